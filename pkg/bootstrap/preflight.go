package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

// preflight checks everything that could make bootstrap fail and changes
// nothing. Independent checks run concurrently, and all their errors are
// reported together.
func (r *run) preflight(ctx context.Context) error {
	for _, stage := range [][]check{
		{
			{"the cluster's version", r.checkVersion},
			{"the permissions on the cluster", r.checkPermissions},
			{"the state of the cluster", r.survey},
			{"the repository", r.cloneRepository},
			{"the manifests", r.render},
		},
		{
			{"the cluster's access to the repository", r.prepareKey},
			{"the files in the repository", r.checkBuild},
		},
		{{"the branch", r.checkBranch}},
	} {
		if err := r.checks.run(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// render renders gotk-components.yaml.
func (r *run) render(context.Context) (err error) {
	r.components, err = r.plan.Components.YAML()
	return err
}

// reportToken reports the account of the token, and its expiry if the cluster
// will use it.
func (r *run) reportToken() {
	if r.hosted.Account != "" {
		r.progress.Success("authenticated as %s", r.hosted.Account)
	}
	if end := r.hosted.Expires; r.plan.TokenAuth && !end.IsZero() {
		r.progress.Warning("the cluster loses access when this token expires on %s: run bootstrap again with a new token before", end.Format(time.DateOnly))
	}
}

// cloneRepository reads the state of the repository from the host and clones
// the branch.
func (r *run) cloneRepository(ctx context.Context) error {
	var err error
	if r.hosted, err = r.plan.Host.Survey(ctx, r.want()); err != nil {
		return err
	}
	r.host = r.hosted.Repository
	r.reportToken()
	if !r.hosted.Exists {
		r.progress.Action("repository %q does not exist yet", redact.URL(r.host.Access.URL))
		r.clone, err = gitrepo.New(gitrepo.Remote{URL: r.host.Access.URL}, r.plan.Branch)
		return err
	}
	r.progress.Action("cloning branch %q from Git repository %q", r.plan.Branch, redact.URL(r.host.Access.URL))
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	if r.clone, err = gitrepo.Open(ctx, remote, r.plan.Branch); err != nil {
		return err
	}
	r.progress.Success("cloned repository")
	if !r.clone.BranchExists() && !r.clone.Empty() {
		r.progress.Warning("branch %q does not exist: it will be created from the default branch", r.plan.Branch)
	}
	return nil
}

// want returns the features of the host that this run needs.
func (r *run) want() githost.Want {
	w := githost.Want{Branch: r.plan.Branch, DeployToken: r.plan.DeployToken, ChangeRequest: r.plan.ChangeRequest}
	if r.plan.bySSH() {
		w.KeyTitle = r.keyTitle()
	}
	return w
}

// checkBranch returns an error if bootstrap has to push to the branch and
// cannot.
func (r *run) checkBranch(ctx context.Context) error {
	pending, err := r.pending(r.clone)
	if err != nil || !pending {
		return err
	}
	_, requests := r.plan.Host.(githost.Requester)
	switch {
	case r.plan.ChangeRequest && !r.clone.BranchExists():
		return failure("push a first commit to it, or run the command once without --pull-request",
			"branch %q does not exist yet: a pull request needs a base branch", r.plan.Branch)
	case r.plan.ChangeRequest || r.hosted.Protected == "":
		return r.checkPushAccess(ctx)
	case requests:
		return failure("open a pull request with --pull-request, or allow this account to push to the branch", "branch %q is protected: %s", r.plan.Branch, r.hosted.Protected)
	default:
		return failure("allow this account to push to the branch, or use another one with --branch", "branch %q is protected: %s", r.plan.Branch, r.hosted.Protected)
	}
}

// checkPushAccess returns an error if the Git server denies pushes.
func (r *run) checkPushAccess(ctx context.Context) error {
	if !r.hosted.Exists {
		return nil
	}
	return r.clone.CheckPush(ctx)
}

// remote returns the address and credentials of the repository for this run.
// Over SSH it verifies the host key first.
func (r *run) remote(ctx context.Context) (gitrepo.Remote, error) {
	a := r.host.Access
	remote := gitrepo.Remote{URL: a.URL, CABundle: a.CABundle}
	u, err := url.Parse(a.URL)
	if err != nil {
		return remote, fmt.Errorf("invalid URL of the repository: %w", err)
	}
	switch {
	case u.Scheme != "ssh" && a.BearerToken != "":
		remote.Auth = gitrepo.Bearer(a.BearerToken)
		return remote, nil
	case u.Scheme != "ssh" && a.Password == "":
		return remote, nil
	case u.Scheme != "ssh":
		remote.Auth = gitrepo.Basic(a.Username, a.Password)
		return remote, nil
	}
	keys, err := r.signers(a)
	if err != nil {
		return remote, err
	}
	hostKey, err := r.scan(ctx, sshkey.Address(u.Host))
	if err != nil {
		return remote, err
	}
	user := u.User.Username()
	if user == "" {
		user = a.Username
	}
	remote.Auth = gitrepo.SSH(user, keys, hostKey.PublicKey)
	return remote, nil
}

// signers returns a function that returns the SSH keys of the private key file
// or of the SSH agent.
func (r *run) signers(a githost.Access) (func() ([]ssh.Signer, error), error) {
	if a.PrivateKey != nil {
		signer, err := r.signer(a.PrivateKey, a.Passphrase)
		if err != nil {
			return nil, err
		}
		return func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }, nil
	}
	if a.AgentSocket == "" {
		return nil, failure("set --private-key-file to a key with write access, or start an SSH agent", "an SSH key is required to authenticate to the repository")
	}
	return func() ([]ssh.Signer, error) {
		conn, err := net.Dial("unix", a.AgentSocket)
		if err != nil {
			return nil, fmt.Errorf("connecting to the SSH agent: %w", err)
		}
		return agent.NewClient(conn).Signers()
	}, nil
}

// signer parses a private key. It keeps the last one, since the key derivation
// of an encrypted key is slow by design.
func (r *run) signer(private []byte, passphrase string) (ssh.Signer, error) {
	if r.cachedSigner != nil && bytes.Equal(r.cachedSignerKey, private) {
		return r.cachedSigner, nil
	}
	signer, err := sshkey.Signer(private, passphrase)
	if err != nil {
		return nil, failure("check --private-key-file, and set its passphrase with GIT_PASSWORD or --password", "invalid SSH key: %w", err)
	}
	r.cachedSigner, r.cachedSignerKey = signer, private
	return signer, nil
}

// prepareKey chooses the key or token of the cluster, and checks that it can be
// granted access.
func (r *run) prepareKey(ctx context.Context) error {
	if !r.plan.bySSH() {
		return r.prepareToken(ctx)
	}
	if err := r.prepareHostKey(ctx); err != nil {
		return err
	}
	if err := r.chooseKey(ctx); err != nil {
		return err
	}
	if p, ok := r.plan.Host.(githost.Preparer); ok && r.key.needsAccess {
		return p.CanDeployKey()
	}
	return nil
}

// prepareHostKey reads and verifies the host key of the server that
// source-controller will fetch from.
func (r *run) prepareHostKey(ctx context.Context) error {
	address, err := sshAddress(r.host.SyncURL)
	if err != nil {
		return fmt.Errorf("invalid SSH URL of the repository: %w", err)
	}
	key, err := r.scan(ctx, address)
	if err != nil {
		return err
	}
	if err := r.checkStoredHostKey(key); err != nil {
		return err
	}
	r.setKnownHosts(key)
	return nil
}

// checkBuild builds the cluster's folder, so that an invalid kustomization is
// reported before anything is pushed.
func (r *run) checkBuild(context.Context) error {
	if err := r.checkPath(); err != nil {
		return err
	}
	_, err := r.build()
	return err
}

// checkPath returns an error if a parent of the folder is a file.
func (r *run) checkPath() error {
	parts := strings.Split(r.folder, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		if _, err := r.clone.ReadFile(at); err == nil {
			return failure("remove the file, or set another --path", "%q in the repository is a file, not a folder", at)
		}
	}
	return nil
}
