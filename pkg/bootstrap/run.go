package bootstrap

import (
	"context"
	"errors"
	"path"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/gitrepo"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
	"github.com/fluxkit/flux/pkg/controllers"
)

// run is one bootstrap under way.
type run struct {
	plan   Plan
	say    Progress
	client *kube.Client

	// Found out by the preflight. host is the repository as it is or will be.
	checks checks
	hosted githost.Survey
	host   githost.Repository
	clone  *gitrepo.Repository
	found  survey
	key    sourceKey
	folder string
	// deployed is the token that the host has made, where it is asked for one.
	deployed deployToken
	// shown is the key of the SSH server that was asked, nil where none was.
	shown *sshkey.HostKey
	// unlocked signs with the private key unlockedFrom.
	unlocked     ssh.Signer
	unlockedFrom []byte
	// knownHosts is the known_hosts file of the cluster.
	knownHosts string
	// built is what the cluster's folder stands for.
	built []*unstructured.Unstructured
	// components is gotk-components.yaml.
	components []byte

	result Result
	// secretChanged says that what the cluster fetched before proves nothing
	// about what it fetches with now.
	secretChanged bool
	// token marks the reconciliations that this run asks for.
	token string
	// revision is what the cluster has fetched.
	revision string
}

type step struct {
	name  string
	waits bool
	do    func(context.Context) error
}

// steps is the whole procedure. The repository comes before the cluster, so
// that a push that the server refuses leaves the cluster as it was.
func (r *run) steps() []step {
	return []step{
		{"check the repository and the cluster", false, r.preflight},
		{"prepare the repository", false, r.prepareRepository},
		{"commit the manifests", false, r.commitManifests},
		{"install the definitions", false, r.installDefinitions},
		{"wait until the definitions are served", true, r.awaitDefinitions},
		{"give the cluster access to the repository", false, r.reconcileSecret},
		{"install the components and the sync manifests", false, r.install},
		{"wait for the controllers", true, r.awaitComponents},
		{"wait for the GitRepository", true, r.awaitSource},
		{"take the old key's access away", false, r.retireKey},
		{"wait for the Kustomization", true, r.awaitSync},
		{"wait for the components to be healthy", true, r.confirmComponents},
	}
}

// Result is what came of a run.
type Result struct {
	// Request is the change request that has to be merged before the cluster
	// is touched; nil where there is none.
	Request *githost.Request
}

// Run bootstraps a cluster. It changes nothing anywhere before it has found
// that the repository can be read and the cluster can take Flux.
func Run(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (_ Result, err error) {
	r, err := begin(cfg, plan, progress)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, s := range r.steps() {
		if err := r.take(ctx, s); err != nil || r.result.Request != nil {
			return r.result, err
		}
	}
	return r.result, nil
}

// Preflight finds out whether Run would work and changes nothing. The checks
// say what was looked at, in so far as it could be.
func Preflight(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (_ []Check, err error) {
	r, err := begin(cfg, plan, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	err = r.take(ctx, r.steps()[0])
	return r.checks, err
}

// Rehearse finds out what Run would create or change, and changes nothing.
func Rehearse(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (p Preview, err error) {
	plan.Commit.Sign = nil // the commits are thrown away
	r, err := begin(cfg, plan, progress)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.take(ctx, r.steps()[0]); err != nil {
		return p, err
	}
	err = r.take(ctx, step{"compare", false, func(ctx context.Context) (err error) {
		p, err = r.preview(ctx)
		return err
	}})
	return p, err
}

func begin(cfg *rest.Config, plan Plan, progress Progress) (*run, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	client, err := kube.New(cfg)
	if err != nil {
		return nil, err
	}
	if plan.Path, err = CleanPath(plan.Path); err != nil {
		return nil, err
	}
	return &run{
		plan: plan, say: progress, client: client,
		folder: path.Join(plan.Path, plan.Components.Namespace),
		token:  plan.Now().Format(time.RFC3339Nano),
	}, nil
}

func (r *run) take(ctx context.Context, s step) error {
	defer r.say.Step(s.name, s.waits)()
	return explain(s.do(ctx))
}

func (r *run) close() error {
	if r.clone == nil {
		return nil
	}
	return r.clone.Close()
}

// explain gives the failures of Git and of its hosts the way out that they know.
func explain(err error) error {
	var known *Error
	var git *gitrepo.Error
	var host *githost.Error
	var inTheWay *gitrepo.InTheWayError
	var denied *kube.DeniedError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &host):
		return &Error{err, host.Hint}
	case errors.As(err, &git):
		return &Error{err, git.Hint}
	case errors.As(err, &denied):
		return &Error{err, "ask who administers the cluster for these, or name another user with --context or --user"}
	case errors.As(err, &inTheWay):
		return &Error{err, "move it away, or choose another folder with --path"}
	default:
		return err
	}
}

func (r *run) namespace() string { return r.plan.Components.Namespace }

// kind returns a row of the catalogue that is there for certain.
func kind(name string) controllers.Kind {
	k, _ := controllers.FindKind(name)
	return k
}
