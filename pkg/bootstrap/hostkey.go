package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/fluxkit/flux/internal/sshkey"
)

// ServerKey is the key by which an SSH server proves who it is.
type ServerKey struct {
	// Address is the server's host and port.
	Address string
	// Type is as in known_hosts files, Fingerprint as ssh prints it.
	Type, Fingerprint string
}

// scan asks an SSH server for its key, once, and finds out whether to trust it.
func (r *run) scan(ctx context.Context, address string) (sshkey.HostKey, error) {
	if r.shown != nil && r.shown.Address == address {
		return *r.shown, nil
	}
	shown, err := sshkey.Scan(ctx, address, r.plan.Key.HostKeyAlgorithms)
	var dial *net.OpError
	var lookup *net.DNSError
	switch {
	case err == nil:
		r.shown = &shown
		return shown, r.vouch(ctx, shown)
	case errors.As(err, &lookup):
		err = failure("check --url or --hostname, or name it with --ssh-hostname", "asking the SSH server of %s for its key: host %q is not known", address, lookup.Name)
	case errors.As(err, &dial) && dial.Op == "dial":
		err = failure("check --url or --hostname, name another one with --ssh-hostname, or let the cluster use the password or token with --token-auth",
			"asking the SSH server of %s for its key: cannot reach it: %s", address, dial.Err)
	default:
		err = failure("check --url or --hostname, or ask for other types of host keys with --ssh-hostkey-algos", "asking the SSH server of %s for its key: %w", address, err)
	}
	return shown, err
}

// vouch refuses a server that shows another key than is known, and has one
// that nobody knows confirmed.
func (r *run) vouch(ctx context.Context, shown sshkey.HostKey) error {
	if file := r.plan.Key.HostKeysFile; file != "" {
		return r.strictly(file, shown)
	}
	if same, known := sshkey.Published(shown); known {
		if !same {
			return impostor(shown, "none of those that it publishes", "check the network that leads there; if the host has changed its keys, give them with --ssh-known-hosts-file")
		}
		r.say.Success("host key of %s: %s %s, as published", shown.Address, shown.Type(), shown.Fingerprint())
		return nil
	}
	if file := r.plan.Key.KnownHostsFile; file != "" {
		verdict, err := sshkey.Look(file, shown)
		switch {
		case err != nil:
			r.say.Warning("the host key of %s is not compared with those that you know: %s", shown.Address, err)
		case verdict == sshkey.Contradicted:
			return impostor(shown, "not the one in "+file, "if the server's key was changed on purpose, remove the old one from "+file)
		case verdict == sshkey.Listed:
			return nil
		}
	}
	return r.introduce(ctx, shown)
}

// strictly trusts the keys of a file alone.
func (r *run) strictly(file string, shown sshkey.HostKey) error {
	verdict, err := sshkey.Look(file, shown)
	if err != nil {
		return fmt.Errorf("comparing the host key of %s: %w", shown.Address, err)
	}
	if verdict != sshkey.Listed {
		return impostor(shown, "not in "+file, "get the server's key from who runs it, and add it to the file if it is this one")
	}
	return nil
}

func impostor(shown sshkey.HostKey, which, hint string) error {
	return failure(hint, "%s shows the host key %s, which is %s: somebody may be listening in", shown.Address, shown.Fingerprint(), which)
}

// introduce shows a key that nobody knows. Where somebody is there to be asked
// it has to be confirmed; elsewhere it is trusted from now on, since scripts
// could not go on otherwise.
func (r *run) introduce(ctx context.Context, shown sshkey.HostKey) error {
	if known, err := r.knownToCluster(ctx, shown); known || err != nil {
		return err
	}
	if r.plan.Key.Trust != nil {
		return r.plan.Key.Trust(ctx, ServerKey{shown.Address, shown.Type(), shown.Fingerprint()})
	}
	r.say.Warning("host key of %s: %s %s: nobody vouches for it and it is trusted from now on; --ssh-known-hosts-file would compare it",
		shown.Address, shown.Type(), shown.Fingerprint())
	return nil
}

// knownToCluster tells whether the cluster's Secret has the key. The Secret is
// read here, since the survey of the cluster may be under way.
func (r *run) knownToCluster(ctx context.Context, shown sshkey.HostKey) (bool, error) {
	secret, err := r.client.Get(ctx, secretResource(), r.namespace(), r.plan.Sync.SecretName)
	if err != nil {
		return false, ctx.Err() // the survey tells what is wrong with the cluster
	}
	known, _ := sshkey.Known([]byte(secretData(secret)[knownHostsKey]), shown)
	return known, nil
}

// identify decides what the cluster is to know of the SSH server of the sync
// address. A server that shows another key than the cluster knows is not
// trusted, unless a file of the user vouches for it.
func (r *run) identify(shown sshkey.HostKey) {
	stored := []byte(secretData(r.found.secret)[knownHostsKey])
	if known, _ := sshkey.Known(stored, shown); known {
		r.knownHosts = string(stored)
		return
	}
	r.knownHosts = shown.Line() + "\n"
}

// strange refuses a server whose key is another one than the cluster knows.
func (r *run) strange(shown sshkey.HostKey) error {
	_, other := sshkey.Known([]byte(secretData(r.found.secret)[knownHostsKey]), shown)
	_, published := sshkey.Published(shown)
	if !other || published || r.plan.Key.HostKeysFile != "" {
		return nil
	}
	return impostor(shown, fmt.Sprintf("not the one in Secret %s/%s", r.namespace(), r.plan.Sync.SecretName),
		"if the server's key was changed on purpose, give the new one with --ssh-known-hosts-file")
}

// sshAddress is the host and port of an SSH address.
func sshAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return sshkey.Address(u.Host), nil
}
