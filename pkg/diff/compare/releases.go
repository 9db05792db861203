package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
	"github.com/fluxkit/flux/pkg/diff/helmplan"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// Releases compares the HelmReleases of a build that are applied according to
// before. failures holds the errors of the releases that could not be compared.
func (p *Plan) Releases(ctx context.Context, h *desired.HelmOptions, built *build.Result, before []*diff.Result) (results []*diff.Result, failures []error, err error) {
	releases, err := p.releasesIn(ctx, built, before)
	if err != nil || len(releases) == 0 {
		return nil, nil, err
	}
	planner, err := p.comparer.NewReleasePlanner(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	planner.preferBuild(p, built)
	p.comparer.Announce("rendering %d HelmReleases", len(releases))
	plans, failures := make([]dryrun.Plan, len(releases)), make([]error, len(releases))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for i, release := range releases {
		g.Go(func() error {
			plans[i], failures[i] = planner.Plan(gctx, release)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	for i, plan := range plans {
		if failures[i] != nil {
			continue
		}
		var result *diff.Result
		result, failures[i] = planner.Clusters.Compare(ctx, plan)
		if ctx.Err() != nil {
			return results, nil, context.Cause(ctx)
		}
		if failures[i] == nil {
			results = append(results, result)
		}
	}
	return results, failures, nil
}

// ExplainReleaseInBuild is ExplainRelease for commands without --chart.
func ExplainReleaseInBuild(err error) error {
	var source *charts.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return hint.Errorf(fmt.Sprintf("set the directory of the source with --local-sources %s=PATH", hint.Quote(source.Source.String())), "%w", err)
	}
	return ExplainRelease(err)
}

// preferBuild makes the planner prefer sources, ConfigMaps and Secrets of the build
// to those of the cluster, and the compared tree to fetched artifacts.
func (p *ReleasePlanner) preferBuild(plan *Plan, built *build.Result) {
	p.Clusters = plan.clusters
	c := p.comparer
	clear := &build.Result{}
	p.built = map[controllers.ID]*unstructured.Unstructured{}
	for _, object := range built.Objects {
		if _, sealed := object.Object["sops"]; sealed {
			continue // the live object is used instead
		}
		clear.Objects = append(clear.Objects, object)
		p.built[controllers.IDOf(object.Unstructured.Object)] = object.Unstructured
	}
	desired.PreferBuilt(p.Options, clear)
	if c.Path == "" && !c.revised() {
		return
	}
	own, local := build.SourceOf(plan.Ks), p.local
	p.localRevision = func(ctx context.Context, source controllers.ID) string {
		switch {
		case source != own:
			return ""
		case c.revised():
			return plan.revision
		}
		return committed(ctx, c.Path)
	}
	p.local = func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		if tree, err := local(ctx, source); !errors.Is(err, build.ErrNotFound) || source != own {
			return tree, err
		}
		return plan.Tree, nil
	}
}

// committed returns the revision of the work tree around a directory, or "" if the
// work tree has uncommitted changes.
func committed(ctx context.Context, folder string) string {
	clone, err := git.Open(folder)
	if err != nil {
		return ""
	}
	defer func() { _ = clone.Close() }() // read-only
	if head, clean := clone.Committed(ctx); clean {
		return git.Revision{Commit: head.String()}.Flux()
	}
	return ""
}

// releasesIn returns the HelmReleases of a build with the spec that they have after
// the apply.
func (p *Plan) releasesIn(ctx context.Context, built *build.Result, results []*diff.Result) ([]helmplan.HelmRelease, error) {
	changes := map[controllers.ID]diff.Change{}
	for _, r := range results {
		for _, c := range r.Changes {
			if k, _ := c.Object.Flux(); k.Release {
				changes[c.Object.ID] = c
			}
		}
	}
	var releases []helmplan.HelmRelease
	for _, object := range built.Objects {
		ref := controllers.IDOf(object.Unstructured.Object)
		c, compared := changes[ref]
		if !build.IsHelmRelease(object.Unstructured) || !compared || c.Action == diff.Failed {
			continue
		}
		live, err := p.comparer.LiveOrNil(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", ref, err)
		}
		release := helmplan.HelmRelease{Object: live, Live: live}
		if c.Action != diff.Skipped {
			release.Object, release.Twin = p.dryRunApply(ctx, object.Unstructured, live), object.Twin
		}
		if release.Object != nil {
			releases = append(releases, release)
		}
	}
	return releases, nil
}

// dryRunApply returns the HelmRelease after a dry-run apply, which keeps fields
// of other managers, such as spec.suspend. If the dry run fails, it returns
// the built object.
func (p *Plan) dryRunApply(ctx context.Context, built, live *unstructured.Unstructured) *unstructured.Unstructured {
	kind, _ := controllers.FindKind(controllers.HelmRelease)
	after, err := kube.DryRun(ctx, p.client, kube.Of(kind), built.Object, kube.Applier{Manager: "kustomize-controller"})
	if err != nil {
		return WithStatus(built, live)
	}
	return WithStatus(&unstructured.Unstructured{Object: after}, live)
}

// ExplainRelease adds a remedy to an error of a comparison.
func ExplainRelease(err error) error {
	var values *build.VariablesError
	if apierrors.IsForbidden(err) && errors.As(err, &values) {
		return hint.Errorf("a HelmRelease is rendered with your own permissions, which must allow reading the ConfigMaps and Secrets in spec.valuesFrom", "%w", err)
	}
	return explainForbidden(desired.ExplainHelm(err))
}

// explainForbidden adds a remedy to the error of a user without permission.
func explainForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return hint.Errorf("diff uses server-side dry runs, which require permission to get, list and patch the compared objects", "%w", err)
	}
	return err
}
