package desired

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
)

// concurrency is the maximum number of charts that are rendered at the same time.
const concurrency = 16

// RenderRelease renders the HelmRelease as the revision that is deployed.
func (b *Builder) RenderRelease(ctx context.Context, h *HelmOptions, chart *ChartOptions, namespace, name string) (*charts.Result, error) {
	work, err := git.Around(".")
	if err != nil {
		return nil, err
	}
	hr, err := b.objectFor(ctx, wantedHelmRelease(), work, namespace, name)
	if err != nil {
		return nil, err
	}
	options, err := b.HelmBuild(ctx, h, work)
	if err != nil {
		return nil, err
	}
	if err := chart.Override(options); err != nil {
		return nil, err
	}
	options.Revision = deployedRevision(hr)
	result, err := charts.HelmRelease(ctx, hr, *options)
	return result, ExplainHelm(err)
}

// deployedRevision returns the revision of the deployed release, or 0 if there
// is none.
func deployedRevision(hr *unstructured.Unstructured) int {
	history, _, _ := unstructured.NestedSlice(hr.Object, "status", "history")
	if len(history) == 0 {
		return 0
	}
	last, _ := history[0].(map[string]any)
	version, _ := last["version"].(int64)
	return int(version)
}

// RenderReleases renders the HelmReleases of a build and appends their objects to it, in order. If the children of the
// Kustomization are built, it also builds Kustomizations and HelmReleases that the charts install. failures holds an
// error for each failed HelmRelease.
func (b *Builder) RenderReleases(ctx context.Context, h *HelmOptions, plan *Plan, result *build.Result) (failures []error, err error) {
	releases := releasesOf(result)
	if len(releases) == 0 {
		return nil, nil
	}
	options, err := b.HelmBuild(ctx, h, plan.Work)
	if err != nil {
		return nil, err
	}
	if options.Sources, err = b.SourcesWithRemotes(plan.Work, plan.Ks); err != nil {
		return nil, err
	}
	PreferBuilt(options, result)
	b.useMapped(options)
	seen := map[controllers.ID]bool{}
	for depth := 0; len(releases) > 0; depth++ {
		if depth > budget.TreeDepth {
			return nil, &budget.ExceededError{Name: controllers.IDOf(releases[0].Unstructured.Object).String(), Fact: fmt.Sprintf("HelmReleases in charts are nested more than %d levels deep", budget.TreeDepth)}
		}
		releases = slices.DeleteFunc(releases, func(o build.Object) bool {
			id := controllers.IDOf(o.Unstructured.Object)
			known := seen[id]
			seen[id] = true
			return known
		})
		rendered, failed := renderAll(ctx, releases, options)
		failures = append(failures, failed...)
		var next []build.Object
		for i, r := range rendered {
			if r == nil {
				continue
			}
			result.Objects = append(result.Objects, h.Shown(r)...)
			added, failed := plan.follow(releases[i].Unstructured, r)
			result.Add(added)
			failures = append(failures, failed...)
			if plan.deployed != nil {
				next = append(append(next, releasesOf(&r.Result)...), releasesOf(added)...)
			}
		}
		releases = next
	}
	return failures, nil
}

// releasesOf returns the HelmReleases of a build.
func releasesOf(result *build.Result) []build.Object {
	return slices.DeleteFunc(slices.Clone(result.Objects), func(o build.Object) bool { return !build.IsHelmRelease(o.Unstructured) })
}

// renderAll renders HelmReleases at the same time. The result of one that failed is nil.
func renderAll(ctx context.Context, releases []build.Object, options *charts.Options) ([]*charts.Result, []error) {
	results, failures := make([]*charts.Result, len(releases)), make([]error, len(releases))
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i, hr := range releases {
		group.Go(func() error {
			options := *options
			options.Twin = hr.Twin
			results[i], failures[i] = charts.HelmRelease(ctx, hr.Unstructured, options)
			return nil
		})
	}
	_ = group.Wait() // the failures are returned one by one
	return results, failures
}
