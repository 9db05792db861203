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
	plan     Plan
	progress Progress
	client   *kube.Client

	// checks to components are set by preflight. host is the repository as it
	// is, or as it will be created.
	checks checks
	hosted githost.Survey
	host   githost.Repository
	clone  *gitrepo.Repository
	found  survey
	key    sourceKey
	folder string
	// deployed is the deploy token, empty if the host has not created one.
	deployed deployToken
	// hostKey is the host key of the SSH server, nil if none was read.
	hostKey *sshkey.HostKey
	// cachedSigner signs with the private key cachedSignerKey.
	cachedSigner    ssh.Signer
	cachedSignerKey []byte
	// knownHosts is the known_hosts entry of the source Secret.
	knownHosts string
	// built are the objects that the cluster's folder builds to.
	built []*unstructured.Unstructured
	// components is gotk-components.yaml.
	components []byte

	result Result
	// secretChanged is set if this run has changed the source Secret: the
	// artifact was then fetched with other credentials.
	secretChanged bool
	// token is the value of the annotation with which this run requests
	// reconciliations.
	token string
	// before is the revision of the branch before this run has pushed, "" for none.
	before string
	// revision is the revision of the artifact that source-controller fetched.
	revision string
}

type step struct {
	name  string
	waits bool
	do    func(context.Context) error
}

// steps returns the steps of a run. The repository comes before the cluster, so
// that a rejected push leaves the cluster as it was.
func (r *run) steps() []step {
	return []step{
		{"check the repository and the cluster", false, r.preflight},
		{"prepare the repository", false, r.prepareRepository},
		{"commit the manifests", false, r.commitManifests},
		{"install the CRDs", false, r.installPrerequisites},
		{"wait for the CRDs to be served", true, r.waitForCRDs},
		{"grant the cluster access to the repository", false, r.reconcileSecret},
		{"install the components and the sync manifests", false, r.install},
		{"wait for the controllers", true, r.waitForComponents},
		{"wait for the GitRepository", true, r.waitForSource},
		{"revoke the access of the old key", false, r.revokeOldKey},
		{"wait for the Kustomization", true, r.waitForSync},
		{"wait for the components to be healthy", true, r.confirmComponents},
	}
}

// Result is the result of a run.
type Result struct {
	// Request is the pull request that has to be merged before Flux is
	// installed on the cluster; nil for none.
	Request *githost.Request
}

// Run bootstraps Flux on a cluster. It changes nothing before the preflight
// checks of the repository and the cluster have passed.
func Run(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (_ Result, err error) {
	r, err := newRun(cfg, plan, progress)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, s := range r.steps() {
		if err := r.runStep(ctx, s); err != nil || r.result.Request != nil {
			return r.result, err
		}
	}
	return r.result, nil
}

// Preflight runs the preflight checks of Run and changes nothing. It returns
// the checks that could run.
func Preflight(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (_ []Check, err error) {
	r, err := newRun(cfg, plan, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	err = r.runStep(ctx, r.steps()[0])
	return r.checks, err
}

// DryRun returns the changes that Run would make, and makes none.
func DryRun(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (p Preview, err error) {
	plan.Commit.Sign = nil // the commits are not pushed
	r, err := newRun(cfg, plan, progress)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.runStep(ctx, r.steps()[0]); err != nil {
		return p, err
	}
	err = r.runStep(ctx, step{"compare", false, func(ctx context.Context) (err error) {
		p, err = r.preview(ctx)
		return err
	}})
	return p, err
}

func newRun(cfg *rest.Config, plan Plan, progress Progress) (*run, error) {
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
		plan: plan, progress: progress, client: client,
		folder: path.Join(plan.Path, plan.Components.Namespace),
		token:  plan.Now().Format(time.RFC3339Nano),
	}, nil
}

func (r *run) runStep(ctx context.Context, s step) error {
	defer r.progress.Step(s.name, s.waits)()
	return withHint(s.do(ctx))
}

func (r *run) close() error {
	if r.clone == nil {
		return nil
	}
	return r.clone.Close()
}

// withHint returns errors of Git, Git hosts and the cluster with their hint.
func withHint(err error) error {
	var known *Error
	var git *gitrepo.Error
	var host *githost.Error
	var conflict *gitrepo.PathConflictError
	var denied *kube.DeniedError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &host):
		return &Error{err, host.Hint}
	case errors.As(err, &git):
		return &Error{err, git.Hint}
	case errors.As(err, &denied):
		return &Error{err, "ask a cluster administrator for these permissions, or use another account with --context or --user"}
	case errors.As(err, &conflict):
		return &Error{err, "remove the file, or set another --path"}
	default:
		return err
	}
}

func (r *run) namespace() string { return r.plan.Components.Namespace }

// kind returns the row of a kind of Flux in the catalogue.
func kind(name string) controllers.Kind {
	k, _ := controllers.FindKind(name)
	return k
}
