package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/sshkey"
)

// remote is how the repository at an address is opened. Away from the host of
// the source, no user name, password or token is shown to anybody.
func (s Source) remote(ctx context.Context, address string) (gitrepo.Remote, error) {
	u, err := url.Parse(address)
	if err != nil {
		return gitrepo.Remote{}, errors.New("its address is malformed") // the error may quote credentials
	}
	r := gitrepo.Remote{URL: address, CABundle: s.first("ca.crt", "caFile"), Cert: s.first("tls.crt", "certFile"), Key: s.first("tls.key", "keyFile")}
	r.Proxy.URL, r.Proxy.Username, r.Proxy.Password = string(s.Proxy["address"]), string(s.Proxy["username"]), string(s.Proxy["password"])
	switch u.Scheme {
	case "http", "https":
		if home, err := url.Parse(s.URL); err != nil || home.Scheme != u.Scheme || home.Host != u.Host {
			r.Cert, r.Key = nil, nil
			return r, nil
		}
		switch token := s.Secret["bearerToken"]; {
		case len(token) > 0:
			r.Auth = gitrepo.Bearer(string(token))
		case len(s.Secret["username"])+len(s.Secret["password"]) > 0:
			r.Auth = gitrepo.Basic(string(s.Secret["username"]), string(s.Secret["password"]))
		}
		return r, nil
	case "ssh":
		return r, s.key(ctx, &r, u)
	}
	return r, fmt.Errorf("its address begins with %q: http, https and ssh are spoken here", u.Scheme)
}

func (s Source) first(keys ...string) []byte {
	for _, key := range keys {
		if value := s.Secret[key]; len(value) > 0 {
			return value
		}
	}
	return nil
}

// key opens a repository by the SSH key of the Secret, on a host that it knows.
func (s Source) key(ctx context.Context, r *gitrepo.Remote, u *url.URL) error {
	if len(s.Secret["identity"]) == 0 {
		return errors.New("SSH needs a Secret with an SSH key: it has none under \"identity\"")
	}
	signer, err := sshkey.Signer(s.Secret["identity"], string(s.Secret["password"]))
	if err != nil {
		return err
	}
	address := sshkey.Address(u.Host)
	check, algorithms, err := sshkey.Check(s.Secret["known_hosts"], address)
	if err != nil {
		return fmt.Errorf("looking for the host key of %s: %w", address, err)
	}
	// Git's library would wait for ever for a server that says nothing.
	shown, err := sshkey.Scan(ctx, address, algorithms)
	if err != nil {
		return fmt.Errorf("fetching over SSH: %w", err)
	}
	if err := check(address, nil, shown.PublicKey); err != nil {
		return err
	}
	user := "git"
	if u.User != nil && u.User.Username() != "" {
		user = u.User.Username()
	}
	keys := func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }
	r.Auth = gitrepo.CheckedSSH(user, keys, check, algorithms)
	return nil
}
