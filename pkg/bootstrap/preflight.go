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

// preflight finds out everything that could make bootstrap fail and changes
// nothing. What does not depend on each other is asked at the same time, and
// everything that is wrong is reported at once.
func (r *run) preflight(ctx context.Context) error {
	for _, stage := range [][]check{
		{
			{"the cluster's version", r.supported},
			{"the permissions on the cluster", r.permitted},
			{"what is on the cluster", r.survey},
			{"the repository", r.visit},
			{"the manifests", r.render},
		},
		{
			{"the cluster's access to the repository", r.prepareKey},
			{"the files in the repository", r.rehearse},
		},
		{{"the branch", r.mayPush}},
	} {
		if err := r.checks.run(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// render writes down gotk-components.yaml.
func (r *run) render(context.Context) (err error) {
	r.components, err = r.plan.Components.YAML()
	return err
}

// introduceToken tells whose token it is, and of its end where the cluster is
// going to use it.
func (r *run) introduceToken() {
	if r.hosted.Account != "" {
		r.say.Success("the token belongs to %s", r.hosted.Account)
	}
	if end := r.hosted.Expires; r.plan.TokenAuth && !end.IsZero() {
		r.say.Warning("the cluster loses access when this token expires, on %s: run bootstrap again with a new one before", end.Format(time.DateOnly))
	}
}

// visit asks the host about the repository and clones it.
func (r *run) visit(ctx context.Context) error {
	var err error
	if r.hosted, err = r.plan.Host.Survey(ctx, r.want()); err != nil {
		return err
	}
	r.host = r.hosted.Repository
	r.introduceToken()
	if !r.hosted.Exists {
		r.say.Action("repository %q does not exist yet", redact.URL(r.host.Access.URL))
		r.clone, err = gitrepo.New(gitrepo.Remote{URL: r.host.Access.URL}, r.plan.Branch)
		return err
	}
	r.say.Action("cloning branch %q from Git repository %q", r.plan.Branch, redact.URL(r.host.Access.URL))
	remote, err := r.remote(ctx)
	if err != nil {
		return err
	}
	if r.clone, err = gitrepo.Open(ctx, remote, r.plan.Branch); err != nil {
		return err
	}
	r.say.Success("cloned repository")
	if !r.clone.Branched() && !r.clone.Empty() {
		r.say.Warning("there is no branch %q yet: it starts at the newest commit of the default branch", r.plan.Branch)
	}
	return nil
}

// want is what the host is going to be asked.
func (r *run) want() githost.Want {
	w := githost.Want{Branch: r.plan.Branch, DeployToken: r.plan.DeployToken, ChangeRequest: r.plan.ChangeRequest}
	if r.plan.bySSH() {
		w.KeyTitle = r.keyTitle()
	}
	return w
}

// mayPush refuses a branch that takes no commits, where one is needed.
func (r *run) mayPush(ctx context.Context) error {
	pending, err := r.pending(r.clone)
	if err != nil || !pending {
		return err
	}
	_, requests := r.plan.Host.(githost.Requester)
	switch {
	case r.plan.ChangeRequest && !r.clone.Branched():
		return failure("push a first commit to it, or run the command once without --pull-request",
			"branch %q does not exist yet: there is nothing that a change could be merged into", r.plan.Branch)
	case r.plan.ChangeRequest || r.hosted.Protected == "":
		return r.takesPushes(ctx)
	case requests:
		return failure("have the change reviewed and merged with --pull-request, or allow this account to push to it", "branch %q takes no push: %s", r.plan.Branch, r.hosted.Protected)
	default:
		return failure("allow this account to push to it, or use another branch with --branch", "branch %q takes no push: %s", r.plan.Branch, r.hosted.Protected)
	}
}

// takesPushes asks the Git server for the right to push.
func (r *run) takesPushes(ctx context.Context) error {
	if !r.hosted.Exists {
		return nil
	}
	return r.clone.Pushable(ctx)
}

// remote is how the repository is opened from here. Over SSH the server is
// asked for its key first.
func (r *run) remote(ctx context.Context) (gitrepo.Remote, error) {
	a := r.host.Access
	remote := gitrepo.Remote{URL: a.URL, CABundle: a.CABundle}
	u, err := url.Parse(a.URL)
	if err != nil {
		return remote, fmt.Errorf("reading the repository's address: %w", err)
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
	shown, err := r.scan(ctx, sshkey.Address(u.Host))
	if err != nil {
		return remote, err
	}
	user := u.User.Username()
	if user == "" {
		user = a.Username
	}
	remote.Auth = gitrepo.SSH(user, keys, shown.PublicKey)
	return remote, nil
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
func (r *run) prepareKey(ctx context.Context) error {
	if !r.plan.bySSH() {
		return r.prepareToken(ctx)
	}
	if err := r.meet(ctx); err != nil {
		return err
	}
	if err := r.chooseKey(ctx); err != nil {
		return err
	}
	if p, ok := r.plan.Host.(githost.Preparer); ok && r.key.ask {
		return p.CanDeployKey()
	}
	return nil
}

// meet finds out who answers at the address by which the cluster will fetch.
func (r *run) meet(ctx context.Context) error {
	address, err := sshAddress(r.host.SyncURL)
	if err != nil {
		return fmt.Errorf("reading the repository's SSH address: %w", err)
	}
	shown, err := r.scan(ctx, address)
	if err != nil {
		return err
	}
	if err := r.strange(shown); err != nil {
		return err
	}
	r.identify(shown)
	return nil
}

// rehearse builds what is going to be installed, so that a kustomization that
// does not build is found before anything is pushed.
func (r *run) rehearse(context.Context) error {
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
