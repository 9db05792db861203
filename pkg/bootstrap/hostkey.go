package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/fluxkit/flux/internal/sshkey"
)

// ServerKey is the host key of an SSH server.
type ServerKey struct {
	// Address is the server's host and port.
	Address string
	// Type is the key type of known_hosts files, Fingerprint the SHA256
	// fingerprint that ssh prints.
	Type, Fingerprint string
}

// scan returns the host key of an SSH server after it has been verified.
func (r *run) scan(ctx context.Context, address string) (sshkey.HostKey, error) {
	if r.hostKey != nil && r.hostKey.Address == address {
		return *r.hostKey, nil
	}
	key, err := sshkey.Scan(ctx, address, r.plan.Key.HostKeyAlgorithms)
	var dial *net.OpError
	var lookup *net.DNSError
	switch {
	case err == nil:
		r.hostKey = &key
		return key, r.verifyHostKey(ctx, key)
	case errors.As(err, &lookup):
		err = failure("check --url or --hostname, or set --ssh-hostname", "reading the host key of %s: no DNS record for host %q", address, lookup.Name)
	case errors.As(err, &dial) && dial.Op == "dial":
		err = failure("check --url or --hostname, set another host with --ssh-hostname, or use HTTPS with --token-auth",
			"reading the host key of %s: server unreachable: %s", address, dial.Err)
	default:
		err = failure("check --url or --hostname, or request other host key types with --ssh-hostkey-algos", "reading the host key of %s: %w", address, err)
	}
	return key, err
}

// verifyHostKey returns an error if a host key differs from the known one, and
// has an unknown host key confirmed.
func (r *run) verifyHostKey(ctx context.Context, key sshkey.HostKey) error {
	if file := r.plan.Key.HostKeysFile; file != "" {
		return verifyHostKeyInFile(file, key)
	}
	if same, known := sshkey.Published(key); known {
		if !same {
			return hostKeyMismatch(key, "none of the published keys of the host", "check the network path to the host; if the host has changed its keys, pass them with --ssh-known-hosts-file")
		}
		r.progress.Success("host key of %s: %s %s, as published", key.Address, key.Type(), key.Fingerprint())
		return nil
	}
	if file := r.plan.Key.KnownHostsFile; file != "" {
		match, err := sshkey.CheckFile(file, key)
		switch {
		case err != nil:
			r.progress.Warning("could not compare the host key of %s with your known_hosts file: %s", key.Address, err)
		case match == sshkey.Mismatch:
			return hostKeyMismatch(key, "not the one in "+file, "if the server's key was changed on purpose, remove the old one from "+file)
		case match == sshkey.Match:
			return nil
		}
	}
	return r.confirmHostKey(ctx, key)
}

// verifyHostKeyInFile returns an error unless the known_hosts file has the key.
func verifyHostKeyInFile(file string, key sshkey.HostKey) error {
	match, err := sshkey.CheckFile(file, key)
	if err != nil {
		return fmt.Errorf("verifying the host key of %s: %w", key.Address, err)
	}
	if match != sshkey.Match {
		return hostKeyMismatch(key, "not in "+file, "get the host key from the server's administrator, and add it to the file if it is the same")
	}
	return nil
}

func hostKeyMismatch(key sshkey.HostKey, fact, hint string) error {
	return failure(hint, "%s has the host key %s, which is %s: the connection may be intercepted", key.Address, key.Fingerprint(), fact)
}

// confirmHostKey has an unknown host key confirmed by Key.Trust. Without it,
// the key is trusted on first use with a warning, so that scripts can bootstrap.
func (r *run) confirmHostKey(ctx context.Context, key sshkey.HostKey) error {
	if known, err := r.knownToCluster(ctx, key); known || err != nil {
		return err
	}
	if r.plan.Key.Trust != nil {
		return r.plan.Key.Trust(ctx, ServerKey{key.Address, key.Type(), key.Fingerprint()})
	}
	r.progress.Warning("host key of %s: %s %s: unverified, trusted on first use; pin it with --ssh-known-hosts-file",
		key.Address, key.Type(), key.Fingerprint())
	return nil
}

// knownToCluster reports whether the cluster's Secret has the host key. It
// reads the Secret itself because survey may run at the same time.
func (r *run) knownToCluster(ctx context.Context, key sshkey.HostKey) (bool, error) {
	secret, err := r.client.Get(ctx, secretResource(), r.namespace(), r.plan.Sync.SecretName)
	if err != nil {
		return false, ctx.Err() // survey reports the problem with the cluster
	}
	known, _ := sshkey.Known([]byte(secretData(secret)[knownHostsKey]), key)
	return known, nil
}

// setKnownHosts sets the known_hosts entry of the source Secret.
func (r *run) setKnownHosts(key sshkey.HostKey) {
	stored := []byte(secretData(r.found.secret)[knownHostsKey])
	if known, _ := sshkey.Known(stored, key); known {
		r.knownHosts = string(stored)
		return
	}
	r.knownHosts = key.Line() + "\n"
}

// checkStoredHostKey returns an error if the source Secret has another host key
// of the server, and neither the host nor the user's file confirms the new one.
func (r *run) checkStoredHostKey(key sshkey.HostKey) error {
	_, other := sshkey.Known([]byte(secretData(r.found.secret)[knownHostsKey]), key)
	_, published := sshkey.Published(key)
	if !other || published || r.plan.Key.HostKeysFile != "" {
		return nil
	}
	return hostKeyMismatch(key, fmt.Sprintf("not the one in Secret %s/%s", r.namespace(), r.plan.Sync.SecretName),
		"if the server's key was changed on purpose, pass the new one with --ssh-known-hosts-file")
}

// sshAddress returns the host and port of an ssh:// URL.
func sshAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return sshkey.Address(u.Host), nil
}
