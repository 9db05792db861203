package desired

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/build"
)

// concurrency is the maximum number of charts that are rendered at the same time.
const concurrency = 16

// RenderRelease renders the HelmRelease as the revision that is deployed.
func (b *Builder) RenderRelease(ctx context.Context, h *HelmOptions, chart *ChartOptions, namespace, name string) (*build.HelmResult, error) {
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
	result, err := build.HelmRelease(ctx, hr, *options)
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

// RenderReleases renders the HelmReleases of a build and appends their objects to
// it, in order. failures has an error for each that failed to render.
func (b *Builder) RenderReleases(ctx context.Context, h *HelmOptions, plan *Plan, result *build.Result) (failures []error, err error) {
	var releases []build.Object
	for _, object := range result.Objects {
		if build.IsHelmRelease(object.Unstructured) {
			releases = append(releases, object)
		}
	}
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
	results, failures := make([]*build.HelmResult, len(releases)), make([]error, len(releases))
	slots := make(chan struct{}, concurrency)
	var wg sync.WaitGroup
	for i, hr := range releases {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			options := *options
			options.Twin = hr.Twin
			results[i], failures[i] = build.HelmRelease(ctx, hr.Unstructured, options)
		})
	}
	wg.Wait()
	for i, rendered := range results {
		if failures[i] == nil {
			result.Objects = append(result.Objects, h.Shown(rendered)...)
		}
	}
	return failures, nil
}
