package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// ServerKey is the host key of an SSH server.
type ServerKey struct {
	// Address is the server's host and port.
	Address string
	// Type is the key type of known_hosts files, Fingerprint the SHA256
	// fingerprint that ssh prints.
	Type, Fingerprint string
}

// hostKeys reads and verifies the host keys of SSH servers.
type hostKeys struct {
	plan     *Plan
	progress Progress
	cluster  *cluster
	// scanned is the last host key, nil if none was read.
	scanned *sshkey.HostKey
}

// scan returns the host key of an SSH server after it has been verified.
func (h *hostKeys) scan(ctx context.Context, address string) (sshkey.HostKey, error) {
	if h.scanned != nil && h.scanned.Address == address {
		return *h.scanned, nil
	}
	key, err := sshkey.Scan(ctx, address, h.plan.Key.HostKeyAlgorithms)
	var dial *net.OpError
	var lookup *net.DNSError
	switch {
	case err == nil:
		h.scanned = &key
		return key, h.verify(ctx, key)
	case errors.As(err, &lookup):
		err = hint.Errorf("check --url or --hostname, or set --ssh-hostname", "reading the host key of %s: no DNS record for host %q", address, lookup.Name)
	case errors.As(err, &dial) && dial.Op == "dial":
		err = hint.Errorf("check --url or --hostname, set another host with --ssh-hostname, or use HTTPS with --token-auth",
			"reading the host key of %s: server unreachable: %s", address, dial.Err)
	case strings.Contains(err.Error(), "no common algorithm"):
		err = hint.Errorf("request other host key types with --ssh-hostkey-algos", "reading the host key of %s: %w", address, err)
	default:
		err = hint.Errorf("check that an SSH server listens at this address, or increase --timeout", "reading the host key of %s: %w", address, err)
	}
	return key, err
}

// verify returns an error if a host key differs from the known one. It calls
// confirm for an unknown host key.
func (h *hostKeys) verify(ctx context.Context, key sshkey.HostKey) error {
	if file := h.plan.Key.HostKeysFile; file != "" {
		return verifyHostKeyInFile(file, key)
	}
	if same, known := sshkey.Published(key); known {
		if !same {
			return hostKeyMismatch(key, "not one of the host's published keys", "check the network path to the host; if the host has changed its keys, pass them with --ssh-known-hosts-file")
		}
		h.progress.Success("host key of %s: %s %s, as published", key.Address, key.Type(), key.Fingerprint())
		return nil
	}
	if file := h.plan.Key.KnownHostsFile; file != "" {
		match, err := sshkey.CheckFile(file, key)
		switch {
		case err != nil:
			h.progress.Warning("could not compare the host key of %s with your known_hosts file: %s", key.Address, err)
		case match == sshkey.Mismatch:
			return hostKeyMismatch(key, "not the one in "+file, "if the server's key was changed on purpose, remove the old one from "+file)
		case match == sshkey.Match:
			return nil
		}
	}
	return h.confirm(ctx, key)
}

// verifyHostKeyInFile returns an error unless the known_hosts file contains the key.
func verifyHostKeyInFile(file string, key sshkey.HostKey) error {
	match, err := sshkey.CheckFile(file, key)
	if err != nil {
		return fmt.Errorf("verifying the host key of %s: %w", key.Address, err)
	}
	if match != sshkey.Match {
		return hostKeyMismatch(key, "not in "+file, "get the host key from the server's administrator, and add it to the file if it matches")
	}
	return nil
}

func hostKeyMismatch(key sshkey.HostKey, fact, remedy string) error {
	return hint.Errorf(remedy, "%s has the host key %s, which is %s: the connection may be intercepted", key.Address, key.Fingerprint(), fact)
}

// confirm calls Key.Trust to confirm an unknown host key. If Key.Trust is nil, it
// trusts the key on first use with a warning, so that scripts can bootstrap.
func (h *hostKeys) confirm(ctx context.Context, key sshkey.HostKey) error {
	if known, err := h.knownToCluster(ctx, key); known || err != nil {
		return err
	}
	if h.plan.Key.Trust != nil {
		return h.plan.Key.Trust(ctx, ServerKey{key.Address, key.Type(), key.Fingerprint()})
	}
	h.progress.Warning("host key of %s: %s %s: unverified, trusted on first use; pin it with --ssh-known-hosts-file",
		key.Address, key.Type(), key.Fingerprint())
	return nil
}

// knownToCluster reports whether the cluster's Secret contains the host key. It reads the Secret
// itself because survey may run at the same time.
func (h *hostKeys) knownToCluster(ctx context.Context, key sshkey.HostKey) (bool, error) {
	secret, err := h.cluster.client.Get(ctx, secretResource(), h.plan.namespace(), h.plan.Sync.SecretName)
	if err != nil {
		return false, ctx.Err() // survey reports the problem with the cluster
	}
	match, err := sshkey.Check([]byte(secretData(secret)[knownHostsKey]), key)
	return err == nil && match == sshkey.Match, nil
}

// entry returns the known_hosts entry of the source Secret.
func (h *hostKeys) entry(key sshkey.HostKey) string {
	stored := secretData(h.cluster.secret)[knownHostsKey]
	if match, err := sshkey.Check([]byte(stored), key); err == nil && match == sshkey.Match {
		return stored
	}
	return key.Line() + "\n"
}

// checkStored returns an error if the source Secret contains a different host key for the server,
// and neither the host nor the user's file confirms the new key.
func (h *hostKeys) checkStored(key sshkey.HostKey) error {
	match, err := sshkey.Check([]byte(secretData(h.cluster.secret)[knownHostsKey]), key)
	_, published := sshkey.Published(key)
	if err != nil || match != sshkey.Mismatch || published || h.plan.Key.HostKeysFile != "" {
		return nil
	}
	return hostKeyMismatch(key, fmt.Sprintf("not the one in Secret %s/%s", h.plan.namespace(), h.plan.Sync.SecretName),
		"if the server's key was changed on purpose, pass the new one with --ssh-known-hosts-file")
}
