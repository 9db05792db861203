package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// compareReleases compares what the HelmReleases of a build do that the results
// say will be applied. What could not be compared has been reported.
func (a *app) compareReleases(
	ctx context.Context, o *diffOptions, h *helmOptions, p *diffPlan, built *build.Result, before []*diff.Result,
) (results []*diff.Result, err error) {
	releases, err := a.releasesIn(ctx, p, built, before)
	if err != nil || len(releases) == 0 {
		return nil, err
	}
	planner, err := a.newReleasePlanner(ctx, &releaseDiffOptions{diffOptions: *o, helmOptions: *h})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, planner.program.Close()) }()
	planner.among(p, o, built)
	a.progress(o, "rendering %d HelmReleases", len(releases))
	plans, failures := make([]diff.Plan, len(releases)), make([]error, len(releases))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, release := range releases {
		g.Go(func() error {
			plans[i], failures[i] = planner.plan(gctx, release)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, context.Cause(ctx)
	}
	var failed error
	for i, plan := range plans {
		var result *diff.Result
		failure := failures[i]
		if failure == nil {
			result, failure = planner.clusters.compare(ctx, plan)
		}
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		if failure != nil {
			a.report(explainRelease(failure))
			failed = errReported
			continue
		}
		results = append(results, result)
	}
	return results, failed
}

// explainRelease is explainDiff where a chart cannot be given by a flag.
func explainRelease(err error) error {
	var source *build.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return hinted(fmt.Sprintf("name the folder of the source by --local-sources %s=PATH", source.Source), "%w", err)
	}
	return explainDiff(err)
}

// among makes sources, ConfigMaps and Secrets of the same change stand before
// those of the cluster, and the tree that is compared before what is fetched.
func (p *releasePlanner) among(plan *diffPlan, o *diffOptions, built *build.Result) {
	p.clusters = plan.clusters // they know what the change brings
	clear := &build.Result{}
	p.built = map[build.Reference]*unstructured.Unstructured{}
	for _, object := range built.Objects {
		if _, sealed := object.Object["sops"]; sealed {
			continue // what nobody here can read is taken from the cluster
		}
		clear.Objects = append(clear.Objects, object)
		p.built[build.ReferenceTo(object.Unstructured)] = object.Unstructured
	}
	preferBuilt(p.options, clear)
	if o.path == "" && !o.revised() {
		return
	}
	own, local := build.SourceOf(plan.ks), p.local
	p.local = func(ctx context.Context, source build.Reference) (fs.FS, error) {
		if tree, err := local(ctx, source); !errors.Is(err, build.ErrNotFound) || source != own {
			return tree, err
		}
		return plan.tree, nil
	}
}

// releasesIn are the HelmReleases that a build brings, as they will be.
func (a *app) releasesIn(ctx context.Context, p *diffPlan, built *build.Result, results []*diff.Result) ([]diff.HelmRelease, error) {
	changes := map[build.Reference]diff.Change{}
	for _, r := range results {
		for _, c := range r.Changes {
			if !c.Object.IsHelmRelease() {
				continue
			}
			changes[build.Reference{Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name}] = c
		}
	}
	var releases []diff.HelmRelease
	for _, object := range built.Objects {
		ref := build.ReferenceTo(object.Unstructured)
		c, compared := changes[ref]
		if !build.IsHelmRelease(object.Unstructured) || !compared || c.Action == diff.Failed {
			continue
		}
		live, err := a.liveIfAny(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", ref, err)
		}
		release := diff.HelmRelease{Object: live, Live: live}
		if c.Action != diff.Skipped {
			release.Object = p.applying(ctx, object.Unstructured, live)
		}
		if release.Object != nil {
			releases = append(releases, release)
		}
	}
	return releases, nil
}

// applying is what the server makes of a HelmRelease when the change is applied:
// it keeps what others have set, such as that it is suspended. Where the server
// cannot tell, it is as it was built.
func (p *diffPlan) applying(ctx context.Context, built, live *unstructured.Unstructured) *unstructured.Unstructured {
	kind, _ := controllers.FindKind("HelmRelease")
	after, err := p.client.DryRun(ctx, kube.Of(kind), built.Object, "kustomize-controller")
	if err != nil {
		return withStatus(built, live)
	}
	return withStatus(&unstructured.Unstructured{Object: after}, live)
}
