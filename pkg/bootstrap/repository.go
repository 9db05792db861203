package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// repository is the Git repository: its state on the host, the access of this
// run to it, and the clone of the branch. Only ensure changes it.
type repository struct {
	// Repository contains the URLs and credentials of the existing repository, or of the repository to
	// create.
	githost.Repository

	plan     *Plan
	progress Progress
	hostKeys *hostKeys

	// onHost is the state on the host before this run.
	onHost githost.Survey
	// clone is nil before survey.
	clone *remote.Branch
	// signer is the last result of parseKey, for the private key signerKey.
	signer    ssh.Signer
	signerKey []byte
}

// survey reads the state of the repository from the host and clones the branch.
func (r *repository) survey(ctx context.Context) error {
	want := githost.Want{Branch: r.plan.Branch, DeployToken: r.plan.DeployToken, ChangeRequest: r.plan.ChangeRequest}
	if r.plan.bySSH() {
		want.KeyTitle = r.plan.keyTitle()
	}
	var err error
	if r.onHost, err = r.plan.Host.Survey(ctx, want); err != nil {
		return err
	}
	r.Repository = r.onHost.Repository
	r.reportToken()
	if !r.onHost.Exists {
		r.progress.Action("repository %q does not exist yet", redact.URL(r.Access.URL))
		r.clone, err = remote.New(remote.Repository{URL: r.Access.URL}, r.plan.Branch)
		return err
	}
	r.progress.Action("cloning branch %q from Git repository %q", r.plan.Branch, redact.URL(r.Access.URL))
	if r.clone, err = r.open(ctx, r.plan.Branch); err != nil {
		return err
	}
	r.progress.Success("cloned repository")
	if !r.clone.BranchExists() && !r.clone.Empty() {
		r.progress.Warning("branch %q does not exist: it will be created from the default branch", r.plan.Branch)
	}
	return nil
}

// reportToken reports the account of the token, and its expiry if the cluster
// will use it.
func (r *repository) reportToken() {
	if r.onHost.Account != "" {
		r.progress.Success("authenticated as %s", r.onHost.Account)
	}
	if end := r.onHost.Expires; r.plan.TokenAuth && !end.IsZero() {
		r.progress.Warning("the cluster loses access when this token expires on %s: run bootstrap again with a new token before then", end.Format(time.DateOnly))
	}
}

// ensure creates or updates the repository on the host, and returns its previous
// URLs and credentials.
func (r *repository) ensure(ctx context.Context) (before githost.Repository, err error) {
	for _, change := range r.onHost.Changes {
		r.progress.Action("on the Git host: %s", change)
	}
	before = r.Repository
	repository, err := r.plan.Host.Ensure(ctx)
	if err != nil {
		return before, err
	}
	if len(r.onHost.Changes) > 0 {
		r.progress.Success("Git host configured")
	}
	r.Repository = repository
	return before, nil
}

// open clones a branch.
func (r *repository) open(ctx context.Context, branch string) (*remote.Branch, error) {
	target, err := r.remote(ctx)
	if err != nil {
		return nil, err
	}
	return remote.Open(ctx, target, branch)
}

// remote returns the address and credentials of the repository for this run.
// Over SSH it verifies the host key first.
func (r *repository) remote(ctx context.Context) (remote.Repository, error) {
	a := r.Access
	target := remote.Repository{URL: a.URL, CABundle: a.CABundle}
	u, err := url.Parse(a.URL)
	if err != nil {
		return target, fmt.Errorf("invalid repository URL: %w", err)
	}
	switch {
	case u.Scheme != "ssh" && a.BearerToken != "":
		target.Auth = remote.Bearer(a.BearerToken)
		return target, nil
	case u.Scheme != "ssh" && a.Password == "":
		return target, nil
	case u.Scheme != "ssh":
		target.Auth = remote.Basic(a.Username, a.Password)
		return target, nil
	}
	keys, err := r.signers()
	if err != nil {
		return target, err
	}
	hostKey, err := r.hostKeys.scan(ctx, sshkey.Address(u.Host))
	if err != nil {
		return target, err
	}
	user := u.User.Username()
	if user == "" {
		user = a.Username
	}
	target.Auth = remote.SSH(user, keys, hostKey.PublicKey)
	return target, nil
}

// signers returns a function that reads the SSH keys from the private key file or the SSH agent.
func (r *repository) signers() (func() ([]ssh.Signer, error), error) {
	if r.Access.PrivateKey != nil {
		signer, err := r.parseKey(r.Access.PrivateKey, r.Access.Passphrase)
		if err != nil {
			return nil, err
		}
		return func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, nil
	}
	socket := r.Access.AgentSocket
	if socket == "" {
		return nil, hint.Errorf("set --private-key-file to a key with write access, or start an SSH agent", "an SSH key is required to authenticate to the repository")
	}
	return func() ([]ssh.Signer, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, fmt.Errorf("connecting to the SSH agent: %w", err)
		}
		return agent.NewClient(conn).Signers()
	}, nil
}

// parseKey parses a private key. It keeps the last one, since the key derivation
// of an encrypted key is slow by design.
func (r *repository) parseKey(private []byte, passphrase string) (ssh.Signer, error) {
	if r.signer != nil && bytes.Equal(r.signerKey, private) {
		return r.signer, nil
	}
	signer, err := sshkey.Signer(private, passphrase)
	if err != nil {
		return nil, hint.Errorf("check --private-key-file, and set its passphrase with GIT_PASSWORD or --password", "invalid SSH key: %w", err)
	}
	r.signer, r.signerKey = signer, private
	return signer, nil
}

// headRevision returns the newest commit of the branch as a Flux revision.
func (r *repository) headRevision() string {
	return git.Revision{Name: r.plan.Branch, Commit: r.clone.Head()}.Flux()
}

func (r *repository) close() error {
	if r.clone == nil {
		return nil
	}
	return r.clone.Close()
}
