package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

// preflight finds out everything that could make bootstrap fail and changes
// nothing. What does not depend on each other is asked at the same time.
func (r *run) preflight(ctx context.Context) error {
	var err error
	if r.host, err = r.plan.Host.Ensure(ctx); err != nil {
		return err
	}
	r.say.Action("cloning branch %q from Git repository %q", r.plan.Branch, redact.URL(r.host.Access.URL))
	var shown *sshkey.HostKey
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.survey(gctx) })
	g.Go(func() (err error) {
		shown, err = r.open(gctx)
		return err
	})
	g.Go(func() (err error) {
		r.components, err = r.plan.Components.YAML()
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	r.say.Success("cloned repository")
	if !r.clone.Branched() && !r.clone.Empty() {
		r.say.Warning("there is no branch %q yet: it starts at the newest commit of the default branch", r.plan.Branch)
	}
	if err := r.prepareKey(ctx, shown); err != nil {
		return err
	}
	return r.rehearse()
}

// open clones the repository, and over SSH asks the server for its key first.
func (r *run) open(ctx context.Context) (*sshkey.HostKey, error) {
	remote, shown, err := r.remote(ctx)
	if err != nil {
		return nil, err
	}
	r.clone, err = gitrepo.Open(ctx, remote, r.plan.Branch)
	return shown, err
}

func (r *run) remote(ctx context.Context) (gitrepo.Remote, *sshkey.HostKey, error) {
	a := r.host.Access
	remote := gitrepo.Remote{URL: a.URL, CABundle: a.CABundle}
	u, err := url.Parse(a.URL)
	if err != nil {
		return remote, nil, fmt.Errorf("reading the repository's address: %w", err)
	}
	switch {
	case u.Scheme != "ssh" && a.BearerToken != "":
		remote.Auth = gitrepo.Bearer(a.BearerToken)
		return remote, nil, nil
	case u.Scheme != "ssh" && a.Password == "":
		return remote, nil, nil
	case u.Scheme != "ssh":
		remote.Auth = gitrepo.Basic(a.Username, a.Password)
		return remote, nil, nil
	}
	keys, err := r.signers(a)
	if err != nil {
		return remote, nil, err
	}
	shown, err := r.scan(ctx, sshkey.Address(u.Host))
	if err != nil {
		return remote, nil, err
	}
	user := u.User.Username()
	if user == "" {
		user = a.Username
	}
	remote.Auth = gitrepo.SSH(user, keys, shown.PublicKey)
	return remote, &shown, nil
}

func (r *run) scan(ctx context.Context, address string) (sshkey.HostKey, error) {
	shown, err := sshkey.Scan(ctx, address, r.plan.Key.HostKeyAlgorithms)
	var dial *net.OpError
	var lookup *net.DNSError
	switch {
	case err == nil:
		return shown, r.vouch(shown)
	case errors.As(err, &lookup):
		err = failure("check the host in --url, or name it with --ssh-hostname", "asking the SSH server of %s for its key: host %q is not known", address, lookup.Name)
	case errors.As(err, &dial) && dial.Op == "dial":
		err = failure("check the host in --url, name another one with --ssh-hostname, or let the cluster use the password or token with --token-auth",
			"asking the SSH server of %s for its key: cannot reach it: %s", address, dial.Err)
	default:
		err = failure("check the host in --url, or ask for other types of host keys with --ssh-hostkey-algos", "asking the SSH server of %s for its key: %w", address, err)
	}
	return shown, err
}

// vouch refuses a server that shows another key than the user knows.
func (r *run) vouch(shown sshkey.HostKey) error {
	file := r.plan.Key.KnownHostsFile
	if file == "" {
		return nil
	}
	wrong, err := sshkey.Contradicted(file, shown)
	if err != nil {
		r.say.Warning("the host key of %s is not compared with those that you know: %s", shown.Address, err)
		return nil
	}
	if wrong {
		return failure("if the server's key was changed on purpose, remove the old one from "+file,
			"%s shows the host key %s, which is not the one in %s: somebody may be listening in", shown.Address, shown.Fingerprint(), file)
	}
	return nil
}

// signers returns where the keys that open the repository over SSH come from.
func (r *run) signers(a githost.Access) (func() ([]ssh.Signer, error), error) {
	if a.PrivateKey != nil {
		signer, err := r.unlock(a.PrivateKey, a.Passphrase)
		if err != nil {
			return nil, err
		}
		return func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, nil
	}
	if a.AgentSocket == "" {
		return nil, failure("name a key that may write to the repository with --private-key-file, or start an SSH agent", "no SSH key is given to open the repository with")
	}
	return func() ([]ssh.Signer, error) {
		conn, err := net.Dial("unix", a.AgentSocket)
		if err != nil {
			return nil, fmt.Errorf("asking the SSH agent for its keys: %w", err)
		}
		return agent.NewClient(conn).Signers()
	}, nil
}

// unlock reads a private key. A locked one is made slow to open on purpose, so
// the same is not opened twice.
func (r *run) unlock(private []byte, passphrase string) (ssh.Signer, error) {
	if r.unlocked != nil && bytes.Equal(r.unlockedFrom, private) {
		return r.unlocked, nil
	}
	signer, err := sshkey.Signer(private, passphrase)
	if err != nil {
		return nil, failure("check --private-key-file, and give its passphrase with GIT_PASSWORD or --password", "using the SSH key: %w", err)
	}
	r.unlocked, r.unlockedFrom = signer, private
	return signer, nil
}

// prepareKey decides which key the cluster will use, and finds out whether it
// could be given access.
func (r *run) prepareKey(ctx context.Context, shown *sshkey.HostKey) error {
	if r.plan.TokenAuth {
		return nil
	}
	address, err := sshAddress(r.host.SyncURL)
	if err != nil {
		return fmt.Errorf("reading the repository's SSH address: %w", err)
	}
	if shown == nil || shown.Address != address {
		other, err := r.scan(ctx, address)
		if err != nil {
			return err
		}
		shown = &other
	}
	if err := r.identify(*shown); err != nil {
		return err
	}
	if err := r.chooseKey(); err != nil {
		return err
	}
	if p, ok := r.plan.Host.(githost.Preparer); ok && r.key.ask {
		return p.CanDeployKey()
	}
	return nil
}

// rehearse builds what is going to be installed, so that a kustomization that
// does not build is found before anything is pushed.
func (r *run) rehearse() error {
	if err := r.otherFiles(); err != nil {
		return err
	}
	_, err := r.build()
	return err
}

// otherFiles refuses to write where a file stands in the way of the folder.
func (r *run) otherFiles() error {
	parts := strings.Split(r.folder, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		if _, err := r.clone.ReadFile(at); err == nil {
			return failure("move it away, or choose another folder with --path", "%q in the repository is a file where a folder is wanted", at)
		}
	}
	return nil
}
