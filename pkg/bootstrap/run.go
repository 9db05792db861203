package bootstrap

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
)

// run is one bootstrap run. Its methods are the steps that involve several parts.
type run struct {
	plan     *Plan
	progress Progress
	checks   checks

	cluster      *cluster
	repository   *repository
	files        *files
	commits      *commits
	access       *access
	installation *installation
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
		{"commit the manifests", false, r.commits.add},
		{"install the CRDs", false, r.installation.applyPrerequisites},
		{"wait for the CRDs to be served", true, r.installation.waitForCRDs},
		{"grant the cluster access to the repository", false, r.access.reconcile},
		{"install the components and the sync manifests", false, r.installation.apply},
		{"wait for the controllers", true, r.installation.waitForComponents},
		{"wait for the GitRepository", true, r.installation.waitForSource},
		{"revoke the old key's access", false, r.access.revokeOldKey},
		{"wait for the Kustomization", true, r.installation.waitForSync},
		{"wait for the components to be healthy", true, r.installation.confirmComponents},
	}
}

// Result is the result of a run.
type Result struct {
	// Request is the pull request that has to be merged before Flux is
	// installed on the cluster; nil for none.
	Request *githost.Request
}

// Run bootstraps Flux on a cluster. It changes nothing until the preflight checks of the repository
// and the cluster have passed.
func Run(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (_ Result, err error) {
	r, err := newRun(cfg, plan, progress)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, r.repository.close()) }()
	for _, s := range r.steps() {
		if err := r.runStep(ctx, s); err != nil || r.commits.request != nil {
			return Result{r.commits.request}, err
		}
	}
	return Result{}, nil
}

// Preflight runs the preflight checks of Run and changes nothing. It returns
// the checks that could run.
func Preflight(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (_ []Check, err error) {
	r, err := newRun(cfg, plan, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.repository.close()) }()
	err = r.runStep(ctx, r.steps()[0])
	return r.checks, err
}

// DryRun returns the changes that Run would make, without making them.
func DryRun(ctx context.Context, cfg *rest.Config, plan Plan, progress Progress) (p Preview, err error) {
	plan.Commit.Sign = nil // the commits are not pushed
	r, err := newRun(cfg, plan, progress)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, r.repository.close()) }()
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
	c := &cluster{plan: &plan, client: client}
	keys := &hostKeys{plan: &plan, progress: progress, cluster: c}
	repository := &repository{plan: &plan, progress: progress, hostKeys: keys}
	f := &files{plan: &plan, repository: repository}
	a := &access{plan: &plan, progress: progress, cluster: c, repository: repository, hostKeys: keys}
	commits := &commits{plan: &plan, progress: progress, repository: repository, files: f}
	return &run{
		plan: &plan, progress: progress, cluster: c, repository: repository, files: f, access: a, commits: commits,
		installation: &installation{plan: &plan, progress: progress, cluster: c, commits: commits, files: f, access: a,
			token: plan.Now().Format(time.RFC3339Nano)},
	}, nil
}

func (r *run) runStep(ctx context.Context, s step) error {
	defer r.progress.Step(s.name, s.waits)()
	return withHint(s.do(ctx))
}

// preflight checks everything that could make bootstrap fail and changes
// nothing. Independent checks run concurrently, and all their errors are
// reported together.
func (r *run) preflight(ctx context.Context) error {
	for _, stage := range [][]check{
		{
			{"the cluster's version", r.cluster.checkVersion},
			{"the permissions on the cluster", r.cluster.checkPermissions},
			{"the state of the cluster", r.cluster.survey},
			{"the repository", r.repository.survey},
			{"the manifests", r.files.render},
		},
		{
			{"the cluster's access to the repository", r.access.prepare},
			{"the files in the repository", r.files.check},
		},
		{{"the branch", r.commits.check}},
	} {
		if err := r.checks.run(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// prepareRepository creates or updates the repository on the host.
func (r *run) prepareRepository(ctx context.Context) error {
	before, err := r.repository.ensure(ctx)
	if err != nil {
		return err
	}
	if r.plan.bySSH() && before.SyncURL != r.repository.SyncURL {
		// Some hosts report the address of their SSH server only with a repository.
		if err := r.access.prepareHostKey(ctx); err != nil {
			return err
		}
	}
	if r.repository.onHost.Exists && before.Access.URL == r.repository.Access.URL {
		return nil
	}
	// The host may have created the repository with a first commit.
	target, err := r.repository.remote(ctx)
	if err != nil {
		return err
	}
	r.repository.clone.SetRepository(target)
	r.files.built = nil
	return r.repository.clone.Refresh(ctx)
}

// withHint adds remedies to errors from Git and the cluster.
func withHint(err error) error {
	var known *hint.Error
	var git *remote.Error
	var conflict *filetree.ConflictError
	var denied *kube.DeniedError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &git):
		return &hint.Error{Err: err, Hint: git.Hint}
	case errors.As(err, &denied):
		return &hint.Error{Err: err, Hint: "ask a cluster administrator for these permissions, or use another account with --context or --user"}
	case errors.As(err, &conflict):
		return &hint.Error{Err: err, Hint: "remove the file, or set another --path"}
	default:
		return err
	}
}
