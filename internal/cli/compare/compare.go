// Package compare compares the desired state with clusters and with other
// revisions, for the diff commands.
package compare

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/objref"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff"
)

// Plan is a build with the state that its result is compared with.
type Plan struct {
	desired.Plan
	client *kube.Client
	// live is the Kustomization on the cluster, or nil if it does not exist.
	live *unstructured.Unstructured
	// revision is the revision of the build, for messages.
	revision string
	// unaltered is set if the build uses the live spec and the current
	// revision of the source, without overrides from the command line.
	unaltered bool
	// stored caches the artifacts of sources.
	stored *desired.StoredSources
	// settings are the flags of kustomize-controller, as far as they are
	// readable.
	settings Settings
	// clusters are the target clusters that have been compared.
	clusters *Clusters
}

// NewPlan prepares the comparison of a Kustomization. It returns nil if there
// is nothing to compare.
func NewPlan(ctx context.Context, a *app.App, cmd *cobra.Command, o *Options, name string) (*Plan, error) {
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return nil, err
	}
	if err := desired.CheckFolder(o.Path); err != nil {
		return nil, err
	}
	live, settings, err := liveWithSettings(ctx, a, client, namespace, name)
	if proceed, err := WithoutLive(a, o, err); !proceed {
		return nil, err
	}
	ks := live
	if o.File != "" {
		if ks, err = desired.KustomizationFromFile(ctx, a, o.File, namespace, name); err != nil {
			return nil, err
		}
	}
	plan := &Plan{client: client, live: live, settings: settings, stored: &desired.StoredSources{Client: client, Home: a.FluxNamespace()}}
	switch {
	case o.Path != "":
		err = plan.local(ctx, a, o, ks)
	case o.revised():
		err = plan.revised(ctx, a, o, ks)
	default:
		err = plan.fetched(ctx, a, o, ks)
	}
	return plan, err
}

// WithoutLive reports whether the comparison continues after the live object
// could not be read: --ignore-not-found treats a missing object as new, or as
// nothing to compare.
func WithoutLive(a *app.App, o *Options, err error) (bool, error) {
	var absent *objref.NotFoundError
	if !o.IgnoreNotFound || !errors.As(err, &absent) {
		return err == nil, err
	}
	if o.File != "" {
		return true, nil
	}
	a.UI.Success("%s: there is nothing to compare", err)
	return false, nil
}

// diffBuildOptions returns the build options except Path.
func diffBuildOptions(a *app.App, o *Options, settings Settings) (build.Options, error) {
	vars, secretVars, err := o.Vars()
	if err != nil {
		return build.Options{}, err
	}
	kustomizer, err := a.Kustomizer(o.Remote)
	return build.Options{
		Vars: vars, SecretVars: secretVars, Strict: o.Strict, Ignore: o.Ignore, Lookup: build.LookupFunc(func(ctx context.Context, object build.Reference) (map[string][]byte, error) {
			return desired.ClusterData(ctx, a, object)
		}), Decrypt: decrypters(a, settings), Kustomizer: kustomizer,
	}, err
}

// local plans the build of a local directory.
func (p *Plan) local(ctx context.Context, a *app.App, o *Options, ks *unstructured.Unstructured) error {
	work, err := workspace.Around(o.Path)
	if err != nil {
		return err
	}
	work = work.ForSource(o.Path, ks)
	options, err := diffBuildOptions(a, o, p.settings)
	if err != nil {
		return err
	}
	if options.Path, err = work.Inside(o.Path); err != nil {
		return err
	}
	tree, filter, err := o.Artifact(ctx, a, work, build.SourceOf(ks))
	if err != nil {
		return err
	}
	options.Filter = filter
	p.Plan, p.revision = desired.Plan{Ks: ks, Tree: tree, Options: options}, "the files in "+o.Path
	if !o.Recursive {
		return nil
	}
	local, err := o.LocalSources(a, work, ks)
	say := func(format string, args ...any) { Announce(a, o, format, args...) }
	p.Sources = (&desired.Fetcher{App: a, O: &o.BuildOptions, Work: work, Stored: p.stored, Say: say}).WithFetched(local)
	return err
}

// fetched plans the build of the current artifact of the source.
func (p *Plan) fetched(ctx context.Context, a *app.App, o *Options, ks *unstructured.Unstructured) error {
	options, err := diffBuildOptions(a, o, p.settings)
	if err != nil {
		return err
	}
	source := build.SourceOf(ks)
	Announce(a, o, "fetching the artifact of %s", source)
	stored, err := p.stored.Get(ctx, source)
	if err != nil {
		return hint.Errorf("compare a local directory with --path", "%w", err)
	}
	p.Plan, p.revision = desired.Plan{Ks: ks, Tree: stored.Tree, Options: options}, stored.Revision
	p.unaltered = ks == p.live && len(o.Set) == 0 && o.VarsFile == "" && len(o.Ignore) == 0
	if o.Recursive {
		p.Sources = p.stored.Tree
	}
	return nil
}

// applied builds the last applied revision if it is still the artifact of the
// source. Encrypted objects are compared with that build.
func (p *Plan) applied(ctx context.Context, live *unstructured.Unstructured) (*build.Result, error) {
	if live == nil {
		return nil, nil
	}
	stored, err := p.stored.Get(ctx, build.SourceOf(live))
	if err != nil || stored.Revision != desired.Text(live, "status", "lastAppliedRevision") {
		return nil, err
	}
	options := p.Options
	options.Path, options.Filter, options.Ignore = "", false, nil
	return build.Kustomization(ctx, stored.Tree, live, options)
}

// Compare compares the objects of each Kustomization, in build order.
func Compare(ctx context.Context, a *app.App, p *Plan, built *build.Result) ([]*diff.Result, error) {
	plans, err := plansOf(ctx, a, p, built)
	if err != nil {
		return nil, err
	}
	// The objects of a Kustomization may depend on those of the previous one
	// on the same cluster.
	c := &Clusters{App: a, here: p.client.Config, settings: p.settings}
	p.clusters = c
	var results []*diff.Result
	for _, plan := range plans {
		plan.Drift = plan.Drift && !changes(results, diff.RefOf(plan.Owner))
		result, err := c.Compare(ctx, plan)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return c.withDeletions(ctx, results)
}

// plansOf splits a build by Kustomization. A Kustomization in the build is
// compared with its new spec.
func plansOf(ctx context.Context, a *app.App, p *Plan, built *build.Result) ([]diff.Plan, error) {
	root := build.ReferenceTo(p.Ks)
	specs := map[build.Reference]*unstructured.Unstructured{}
	parts := map[build.Reference]*build.Result{root: {SecretValues: built.SecretValues}}
	order := []build.Reference{root}
	for _, o := range built.Objects {
		if build.IsKustomization(o.Unstructured) {
			specs[build.ReferenceTo(o.Unstructured)] = o.Unstructured
		}
		if parts[o.Owner] == nil {
			parts[o.Owner] = &build.Result{SecretValues: built.SecretValues}
			order = append(order, o.Owner)
		}
		parts[o.Owner].Objects = append(parts[o.Owner].Objects, o)
	}
	plans := make([]diff.Plan, len(order))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrentReads)
	for i, owner := range order {
		plans[i] = diff.Plan{Owner: WithStatus(specs[owner], nil), Build: parts[owner], Revision: p.revision}
		if owner == root {
			plans[i].Owner, plans[i].Drift = WithStatus(p.Ks, p.live), p.isApplied(p.live)
			plans[i].Applied = func(ctx context.Context) (*build.Result, error) { return p.applied(ctx, p.live) }
			continue
		}
		g.Go(func() error {
			live, err := desired.LiveOrNil(ctx, a, owner)
			if err != nil {
				return err
			}
			plans[i].Owner, plans[i].Drift = WithStatus(specs[owner], live), p.isApplied(live)
			plans[i].Applied = func(ctx context.Context) (*build.Result, error) { return p.applied(ctx, live) }
			return nil
		})
	}
	return plans, g.Wait()
}

// isApplied reports whether the build equals the last applied revision, so
// that a difference is drift.
func (p *Plan) isApplied(live *unstructured.Unstructured) bool {
	if !p.unaltered || live == nil || p.revision == "" || desired.Text(live, "status", "lastAppliedRevision") != p.revision {
		return false
	}
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return observed == live.GetGeneration()
}

// changes reports whether results change the object.
func changes(results []*diff.Result, ref diff.Ref) bool {
	for _, r := range results {
		for _, c := range r.Changes {
			if c.Object == ref && c.Different() {
				return true
			}
		}
	}
	return false
}

// maxConcurrentReads is the number of Kustomizations that are read concurrently.
const maxConcurrentReads = 16

// WithStatus returns ks with the status of live, which has the inventory.
func WithStatus(ks, live *unstructured.Unstructured) *unstructured.Unstructured {
	if ks == nil || ks == live {
		return ks
	}
	joined := ks.DeepCopy()
	delete(joined.Object, "status")
	if live != nil && live.Object["status"] != nil {
		joined.Object["status"] = live.Object["status"]
	}
	return joined
}
