// Package compare compares the desired state with clusters, and with other
// revisions of sources.
package compare

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// Comparer compares builds with the clusters that they apply to.
type Comparer struct {
	*desired.Builder
	Decryption *upstream.Decryption
	// IgnoreNotFound treats an object that is not on the cluster as new if Options.File has it.
	IgnoreNotFound bool
	// FieldOwners adds the field managers that own the changed fields.
	FieldOwners bool
	// Revision and Branch select the revision of the source to compare. Both are empty for the current one.
	Revision, Branch string
	// Track is called before the objects of an owner are compared. It returns functions to call on progress
	// and at the end.
	Track func(owner controllers.VersionedID) (count func(done, total int), done func())
}

// Revision returns the revision of the build, for messages.
func (p *Plan) Revision() string { return p.revision }

// MissingError is returned if the object to compare is not on the cluster.
type MissingError struct{ Err *objref.NotFoundError }

func (e *MissingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *MissingError) Unwrap() error { return e.Err }

// Plan is a build with the state that its result is compared with.
type Plan struct {
	desired.Plan
	comparer *Comparer
	client   *kube.Client
	// live is the Kustomization on the cluster, or nil if it does not exist.
	live *unstructured.Unstructured
	// revision is the revision of the build, for messages.
	revision string
	// unaltered is set if the build uses the live spec and the current
	// revision of the source, without overrides of the options.
	unaltered bool
	// stored caches the artifacts of sources.
	stored *upstream.StoredSources
	// settings holds the flags of kustomize-controller, if they can be read.
	settings Settings
	// clusters holds the target clusters that have been compared.
	clusters *Clusters
}

// NewPlan prepares the comparison of a Kustomization. It returns a MissingError if
// there is nothing to compare.
func (c *Comparer) NewPlan(ctx context.Context, namespace, name string) (*Plan, error) {
	if err := desired.CheckFolder(c.Path); err != nil {
		return nil, err
	}
	client, err := c.Connect()
	if err != nil {
		return nil, err
	}
	live, settings, err := c.liveWithSettings(ctx, client, namespace, name)
	if err := c.withoutLive(err); err != nil {
		return nil, err
	}
	ks := live
	if c.File != "" {
		if ks, err = c.KustomizationFromFile(ctx, namespace, name); err != nil {
			return nil, err
		}
	}
	plan := &Plan{comparer: c, client: client, live: live, settings: settings, stored: &upstream.StoredSources{Client: client, Home: c.FluxNamespace}}
	switch {
	case c.Path != "":
		err = plan.local(ctx, ks)
	case c.revised():
		err = plan.revised(ctx, ks)
	default:
		err = plan.fetched(ctx, ks)
	}
	return plan, err
}

// withoutLive returns the error of reading the live object, unless the comparison
// continues without it.
func (c *Comparer) withoutLive(err error) error {
	var absent *objref.NotFoundError
	switch {
	case !errors.As(err, &absent):
		return err
	case c.IgnoreNotFound && c.File != "":
		return nil
	}
	return &MissingError{absent}
}

// revised reports whether another revision of the source is compared.
func (c *Comparer) revised() bool { return c.Revision != "" || c.Branch != "" }

// buildOptions returns the build options except Path.
func (c *Comparer) buildOptions(settings Settings) (build.Options, error) {
	vars, secretVars, err := c.Vars()
	return build.Options{
		Vars: vars, SecretVars: secretVars, Strict: c.Strict, Ignore: c.Ignore, Lookup: build.LookupFunc(c.Data),
		Decrypt: c.decrypters(settings), Kustomizer: c.Kustomizer, Cache: c.Cache,
	}, err
}

// decrypters returns, for each Kustomization, a decrypter with the keys of its
// Secret or the default keys of the controller.
func (c *Comparer) decrypters(settings Settings) func(*unstructured.Unstructured, build.Lookup) build.Decrypter {
	return func(ks *unstructured.Unstructured, lookup build.Lookup) build.Decrypter {
		var named []controllers.ID
		if name := desired.Text(ks, "spec", "decryption", "secretRef", "name"); name != "" {
			named = append(named, controllers.ID{Kind: controllers.Secret, Namespace: ks.GetNamespace(), Name: name})
		}
		if settings.ageSecret != "" {
			named = append(named, controllers.ID{Kind: controllers.Secret, Namespace: c.FluxNamespace, Name: settings.ageSecret})
		}
		return c.Decryption.Decrypter(lookup, named...)
	}
}

// local plans the build of a local directory.
func (p *Plan) local(ctx context.Context, ks *unstructured.Unstructured) error {
	c := p.comparer
	work, err := git.Around(c.Path)
	if err != nil {
		return err
	}
	work = work.ForSource(c.Path, desired.Text(ks, "spec", "path"))
	options, err := c.buildOptions(p.settings)
	if err != nil {
		return err
	}
	if options.Path, err = work.Inside(c.Path); err != nil {
		return err
	}
	tree, filter, err := c.Artifact(ctx, work, build.SourceOf(ks))
	if err != nil {
		return err
	}
	options.Filter = filter
	p.Plan, p.revision = desired.Operated(c.Builder, desired.Plan{Ks: ks, Tree: tree, Options: options}), "the files in "+c.Path
	if !c.Recursive {
		return nil
	}
	local, err := c.LocalSources(work, ks)
	p.Sources = (&desired.Fetcher{Builder: c.Builder, Work: work, Stored: p.stored}).WithFetched(local)
	return err
}

// fetched plans the build of the current artifact of the source.
func (p *Plan) fetched(ctx context.Context, ks *unstructured.Unstructured) error {
	c := p.comparer
	options, err := c.buildOptions(p.settings)
	if err != nil {
		return err
	}
	source := build.SourceOf(ks)
	c.Announce("fetching the artifact of %s", source)
	stored, err := p.stored.Get(ctx, source)
	if err != nil {
		return hint.Errorf("compare a local directory with --path", "%w", err)
	}
	p.Plan, p.revision = desired.Operated(c.Builder, desired.Plan{Ks: ks, Tree: stored.Tree, Options: options}), stored.Revision
	p.unaltered = ks == p.live && len(c.Set) == 0 && c.VarsFile == "" && len(c.Ignore) == 0
	if c.Recursive {
		p.Sources = p.stored.Tree
	}
	return nil
}

// applied builds the last applied revision if it is still the artifact of the
// source. Encrypted objects, and those that may have drifted, are compared with
// that build.
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
func (p *Plan) Compare(ctx context.Context, built *build.Result) ([]*diff.Result, error) {
	plans, err := p.plansOf(ctx, built)
	if err != nil {
		return nil, explainForbidden(err)
	}
	// The objects of a Kustomization may depend on objects of the previous Kustomization on the same
	// cluster.
	c := &Clusters{comparer: p.comparer, here: p.client.Config, settings: p.settings}
	p.clusters = c
	var results []*diff.Result
	for _, plan := range plans {
		plan.Drift = plan.Drift && !changes(results, controllers.VersionedIDOf(plan.Owner.Object))
		result, err := c.Compare(ctx, plan)
		if err != nil {
			return nil, explainForbidden(err)
		}
		results = append(results, result)
	}
	checkOperated(results, built)
	results, err = c.withDeletions(ctx, results)
	return results, explainForbidden(err)
}

// plansOf splits a build by owner. A Kustomization, ResourceSet or FluxInstance in the build is
// compared with its new spec.
func (p *Plan) plansOf(ctx context.Context, built *build.Result) ([]dryrun.Plan, error) {
	root := controllers.IDOf(p.Ks.Object)
	specs := map[controllers.ID]*unstructured.Unstructured{}
	part := func() *build.Result { return &build.Result{SecretValues: built.SecretValues, Excluded: built.Excluded} }
	parts := map[controllers.ID]*build.Result{root: part()}
	order := []controllers.ID{root}
	for _, o := range built.Objects {
		if id := controllers.IDOf(o.Unstructured.Object); build.IsKustomization(o.Unstructured) || id.IsResourceSet() || id.IsFluxInstance() {
			specs[id] = o.Unstructured
		}
		if parts[o.Owner] == nil {
			parts[o.Owner] = part()
			order = append(order, o.Owner)
		}
		parts[o.Owner].Objects = append(parts[o.Owner].Objects, o)
	}
	plans := make([]dryrun.Plan, len(order))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for i, owner := range order {
		plans[i] = dryrun.Plan{Owner: WithStatus(specs[owner], nil), Build: parts[owner], Revision: p.revision}
		if owner == root {
			plans[i].Owner, plans[i].Drift, plans[i].Reconciled = WithStatus(p.Ks, p.live), p.isApplied(p.live), isReconciled(p.live)
			plans[i].Applied = func(ctx context.Context) (*build.Result, error) { return p.applied(ctx, p.live) }
			continue
		}
		g.Go(func() error {
			live, err := p.comparer.LiveOrNil(ctx, owner)
			if err != nil {
				return err
			}
			plans[i].Owner, plans[i].Drift, plans[i].Reconciled = WithStatus(specs[owner], live), p.isApplied(live), isReconciled(live)
			if build.IsKustomization(specs[owner]) {
				plans[i].Applied = func(ctx context.Context) (*build.Result, error) { return p.applied(ctx, live) }
			}
			return nil
		})
	}
	return plans, g.Wait()
}

// isApplied reports whether the build equals the last applied revision, so
// that a difference is drift.
func (p *Plan) isApplied(live *unstructured.Unstructured) bool {
	return p.unaltered && isReconciled(live) && p.revision != "" && desired.Text(live, "status", "lastAppliedRevision") == p.revision
}

// isReconciled reports whether the controller has reconciled the live spec.
func isReconciled(live *unstructured.Unstructured) bool {
	return live != nil && controllers.Reconciled(live.Object)
}

// changes reports whether results change the object.
func changes(results []*diff.Result, ref controllers.VersionedID) bool {
	for _, r := range results {
		for _, c := range r.Changes {
			if c.Object == ref && c.Different() {
				return true
			}
		}
	}
	return false
}

// concurrency is the maximum number of objects that are read or rendered at the same time.
const concurrency = 16

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
