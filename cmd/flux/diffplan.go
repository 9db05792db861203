package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/artifact"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// diffPlan is a build and what its result is compared with.
type diffPlan struct {
	buildPlan
	client *kube.Client
	// live is the Kustomization on the cluster, nil where there is none.
	live *unstructured.Unstructured
	// revision is what is built, for people.
	revision string
	// unaltered is set where the live spec and the revision that its source has
	// are built, without anything else from the command line.
	unaltered bool
	// stored fetches what sources have, each once.
	stored *storedSources
	// settings are those of the controller, as far as they can be seen.
	settings controllerSettings
	// clusters are those that have been compared with.
	clusters *clusters
}

// planDiff finds the Kustomization and the files. It returns nothing where
// there is nothing to do.
func (a *app) planDiff(ctx context.Context, cmd *cobra.Command, o *diffOptions, name string) (*diffPlan, error) {
	client, namespace, err := a.place(cmd)
	if err != nil {
		return nil, err
	}
	if err := checkFolder(o.path); err != nil {
		return nil, err
	}
	live, settings, err := a.liveWithSettings(ctx, client, namespace, name)
	if proceed, err := a.withoutLive(o, err); !proceed {
		return nil, err
	}
	ks := live
	if o.file != "" {
		if ks, err = a.kustomizationIn(o.file, namespace, name); err != nil {
			return nil, err
		}
	}
	plan := &diffPlan{client: client, live: live, settings: settings, stored: &storedSources{client: client, home: a.fluxNamespace()}}
	switch {
	case o.path != "":
		err = plan.local(a, o, ks)
	case o.revised():
		err = plan.revised(ctx, a, o, ks)
	default:
		err = plan.fetched(ctx, a, o, ks)
	}
	return plan, err
}

// withoutLive tells whether a comparison goes on after the live object was read
// with an error: one that is not there may be left out, or be new.
func (a *app) withoutLive(o *diffOptions, err error) (bool, error) {
	var absent *notFoundError
	if !o.ignoreNotFound || !errors.As(err, &absent) {
		return err == nil, err
	}
	if o.file != "" {
		return true, nil
	}
	a.ui.Success("%s: there is nothing to compare", err)
	return false, nil
}

// options are those of the build, of which Path is left to the caller.
func (a *app) diffBuildOptions(o *diffOptions, settings controllerSettings) (build.Options, error) {
	vars, secretVars, err := o.vars()
	if err != nil {
		return build.Options{}, err
	}
	kustomizer, err := a.kustomizer(o.remote)
	return build.Options{
		Vars: vars, SecretVars: secretVars, Strict: o.strict, Ignore: o.ignore, Lookup: build.LookupFunc(a.clusterData), Decrypt: a.decrypters(settings), Kustomizer: kustomizer,
	}, err
}

// local builds a folder on disk.
func (p *diffPlan) local(a *app, o *diffOptions, ks *unstructured.Unstructured) error {
	work, err := workTreeAround(o.path)
	if err != nil {
		return err
	}
	work = work.forSource(o.path, ks)
	options, err := a.diffBuildOptions(o, p.settings)
	if err != nil {
		return err
	}
	options.Filter = true
	if options.Path, err = work.inside(o.path); err != nil {
		return err
	}
	p.buildPlan, p.revision = buildPlan{ks: ks, tree: work.tree(), options: options}, "the files in "+o.path
	if !o.recursive {
		return nil
	}
	local, err := o.localSources(work, ks)
	say := func(format string, args ...any) { a.progress(o, format, args...) }
	p.sources = (&sourceFetcher{app: a, o: &o.buildOptions, work: work, stored: p.stored, say: say}).beyond(local)
	return err
}

// fetched builds what the source of the Kustomization has now.
func (p *diffPlan) fetched(ctx context.Context, a *app, o *diffOptions, ks *unstructured.Unstructured) error {
	options, err := a.diffBuildOptions(o, p.settings)
	if err != nil {
		return err
	}
	source := build.SourceOf(ks)
	a.progress(o, "fetching what %s has", source)
	stored, err := p.stored.get(ctx, source)
	if err != nil {
		return hinted("compare a local folder with --path", "%w", err)
	}
	p.buildPlan, p.revision = buildPlan{ks: ks, tree: stored.tree, options: options}, stored.revision
	p.unaltered = ks == p.live && len(o.set) == 0 && o.varsFile == "" && len(o.ignore) == 0
	if o.recursive {
		p.sources = p.stored.tree
	}
	return nil
}

// applied builds what the controller has applied last, where the source still
// has it: what is encrypted can only be compared with that.
func (p *diffPlan) applied(ctx context.Context, live *unstructured.Unstructured) (*build.Result, error) {
	if live == nil {
		return nil, nil
	}
	stored, err := p.stored.get(ctx, build.SourceOf(live))
	if err != nil || stored.revision != text(live, "status", "lastAppliedRevision") {
		return nil, err
	}
	options := p.options
	options.Path, options.Filter, options.Ignore = "", false, nil
	return build.Kustomization(ctx, stored.tree, live, options)
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// storedSources are the artifacts of sources on the cluster.
type storedSources struct {
	client *kube.Client
	home   string
	known  map[build.Reference]storedSource
}

type storedSource struct {
	tree     fs.FS
	revision string
}

func (s *storedSources) tree(ctx context.Context, source build.Reference) (fs.FS, error) {
	stored, err := s.get(ctx, source)
	return stored.tree, err
}

func (s *storedSources) get(ctx context.Context, source build.Reference) (storedSource, error) {
	if known, ok := s.known[source]; ok {
		return known, nil
	}
	stored, err := s.fetch(ctx, source)
	var gone *artifact.GoneError
	if errors.As(err, &gone) { // a newer one has come between the two requests
		stored, err = s.fetch(ctx, source)
	}
	if err != nil {
		return stored, err
	}
	if s.known == nil {
		s.known = map[build.Reference]storedSource{}
	}
	s.known[source] = stored
	return stored, nil
}

// object reads a source from the cluster.
func (s *storedSources) object(ctx context.Context, source build.Reference) (target, error) {
	kind, ok := controllers.FindKind(source.Kind)
	if !ok {
		return target{}, fmt.Errorf("%s is of a kind that is not known", source)
	}
	t := target{kind: kind, namespace: source.Namespace, name: source.Name}
	return t, t.read(ctx, s.client)
}

func (s *storedSources) fetch(ctx context.Context, source build.Reference) (storedSource, error) {
	t, err := s.object(ctx, source)
	if err != nil {
		return storedSource{}, err
	}
	a, ok := artifact.Of(t.object)
	if !ok {
		return storedSource{}, fmt.Errorf("%s has fetched nothing yet: %s", source, t.kind.Ready(t.object).Message)
	}
	archive, err := artifact.Fetch(ctx, s.client, a, s.home)
	if err != nil {
		return storedSource{}, err
	}
	tree, err := build.Archive(bytes.NewReader(archive))
	if err != nil {
		return storedSource{}, fmt.Errorf("unpacking the artifact of %s: %w", source, err)
	}
	return storedSource{tree, a.Revision}, nil
}

// compare compares what each Kustomization brings, in the order of the build.
func (a *app) compare(ctx context.Context, p *diffPlan, built *build.Result) ([]*diff.Result, error) {
	plans, err := a.plansOf(ctx, p, built)
	if err != nil {
		return nil, err
	}
	// What one Kustomization brings, the next on the same cluster may stand on.
	c := &clusters{app: a, here: p.client.Config, settings: p.settings}
	p.clusters = c
	var results []*diff.Result
	for _, plan := range plans {
		plan.Drift = plan.Drift && !changes(results, diff.RefOf(plan.Owner))
		result, err := c.compare(ctx, plan)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return c.withGoing(ctx, results)
}

// plansOf takes a build apart into what each Kustomization brings. Those that
// are among the objects hold with the spec that they will have.
func (a *app) plansOf(ctx context.Context, p *diffPlan, built *build.Result) ([]diff.Plan, error) {
	root := build.ReferenceTo(p.ks)
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
	g.SetLimit(atOnceDiff)
	for i, owner := range order {
		plans[i] = diff.Plan{Owner: withStatus(specs[owner], nil), Build: parts[owner], Revision: p.revision}
		if owner == root {
			plans[i].Owner, plans[i].Drift = withStatus(p.ks, p.live), p.isApplied(p.live)
			plans[i].Applied = func(ctx context.Context) (*build.Result, error) { return p.applied(ctx, p.live) }
			continue
		}
		g.Go(func() error {
			live, err := a.liveIfAny(ctx, owner)
			if err != nil {
				return err
			}
			plans[i].Owner, plans[i].Drift = withStatus(specs[owner], live), p.isApplied(live)
			plans[i].Applied = func(ctx context.Context) (*build.Result, error) { return p.applied(ctx, live) }
			return nil
		})
	}
	return plans, g.Wait()
}

// isApplied reports whether what is built of a Kustomization is what the
// controller has applied last: then an object that differs has drifted.
func (p *diffPlan) isApplied(live *unstructured.Unstructured) bool {
	if !p.unaltered || live == nil || p.revision == "" || text(live, "status", "lastAppliedRevision") != p.revision {
		return false
	}
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return observed == live.GetGeneration()
}

// changes reports whether an object is among what other comparisons change.
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

// atOnceDiff bounds how many Kustomizations are asked for together.
const atOnceDiff = 16

// withStatus is a Kustomization with the status of the live one: its inventory.
func withStatus(ks, live *unstructured.Unstructured) *unstructured.Unstructured {
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
