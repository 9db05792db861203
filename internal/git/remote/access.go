package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// repository returns the repository at an address. The credentials of
// the Secret are used only for the host of the source over HTTP.
func (s Source) repository(ctx context.Context, address string) (Repository, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Repository{}, errors.New("invalid URL") // the parse error may contain credentials
	}
	r := Repository{URL: address, CABundle: s.first("ca.crt", "caFile"), Cert: s.first("tls.crt", "certFile"), Key: s.first("tls.key", "keyFile")}
	r.Proxy = s.proxy()
	switch u.Scheme {
	case "http", "https":
		if source, err := url.Parse(s.URL); err != nil || source.Scheme != u.Scheme || source.Host != u.Host {
			r.Cert, r.Key = nil, nil
			return r, nil
		}
		switch token := s.Secret["bearerToken"]; {
		case len(token) > 0:
			r.Auth = Bearer(string(token))
		case len(s.Secret["username"])+len(s.Secret["password"]) > 0:
			r.Auth = Basic(string(s.Secret["username"]), string(s.Secret["password"]))
		}
		return r, nil
	case "ssh":
		return r, s.setSSHAuth(ctx, &r, u)
	}
	return r, fmt.Errorf("unsupported URL scheme %q: must be http, https or ssh", u.Scheme)
}

func (s Source) proxy() transport.ProxyOptions {
	return transport.ProxyOptions{URL: string(s.Proxy["address"]), Username: string(s.Proxy["username"]), Password: string(s.Proxy["password"])}
}

// ProxyURL returns the URL of the proxy with its credentials, "" for none.
func (s Source) ProxyURL() (string, error) {
	if len(s.Proxy["address"]) == 0 {
		return "", nil
	}
	options := s.proxy()
	u, err := options.FullURL()
	if err != nil {
		return "", errors.New("invalid proxy URL") // the parse error may contain credentials
	}
	return u.String(), nil
}

func (s Source) first(keys ...string) []byte {
	for _, key := range keys {
		if value := s.Secret[key]; len(value) > 0 {
			return value
		}
	}
	return nil
}

// setSSHAuth sets the SSH key of the Secret. The known_hosts of the Secret must contain the host.
func (s Source) setSSHAuth(ctx context.Context, r *Repository, u *url.URL) error {
	if len(s.Secret["identity"]) == 0 {
		return errors.New("SSH requires a Secret with a private key in \"identity\"")
	}
	signer, err := sshkey.Signer(s.Secret["identity"], string(s.Secret["password"]))
	if err != nil {
		return err
	}
	address := sshkey.Address(u.Host)
	check, algorithms, err := sshkey.Callback(s.Secret["known_hosts"], address)
	if err != nil {
		return fmt.Errorf("host key of %s: %w", address, err)
	}
	// Scan first, so that a wrong host key is not reported as a failed handshake.
	key, err := sshkey.Scan(ctx, address, algorithms)
	if err != nil {
		return &Error{
			Op: "fetching", URL: redact.URL(u.String()), Problem: "reading the host key: " + err.Error(),
			Hint: "check that an SSH server listens at this address, or increase --timeout", Transient: true,
		}
	}
	if err := check(address, nil, key.PublicKey); err != nil {
		return err
	}
	user := "git"
	if u.User != nil && u.User.Username() != "" {
		user = u.User.Username()
	}
	keys := func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }
	r.Auth = SSHWithCallback(user, keys, check, algorithms)
	return nil
}
