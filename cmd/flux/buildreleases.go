package main

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
)

// addReleases renders the HelmReleases of a build, several at a time, and puts
// what they install behind it, in their order. What cannot be rendered has
// been reported.
func (a *app) addReleases(ctx context.Context, o *buildOptions, h *helmOptions, plan *buildPlan, result *build.Result) (err error) {
	var releases []*unstructured.Unstructured
	for _, object := range result.Objects {
		if build.IsHelmRelease(object.Unstructured) {
			releases = append(releases, object.Unstructured)
		}
	}
	if len(releases) == 0 {
		return nil
	}
	options, program, err := a.helmBuild(ctx, o, h, plan.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if options.Sources, err = a.treesOf(o, plan.work, plan.ks); err != nil {
		return err
	}
	preferBuilt(options, result)
	results, failures := make([]*build.HelmResult, len(releases)), make([]error, len(releases))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, hr := range releases {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i], failures[i] = build.HelmRelease(ctx, hr, *options)
		})
	}
	wg.Wait()
	for i, rendered := range results {
		if failures[i] != nil {
			a.report(explainHelm(failures[i]))
			err = errReported
			continue
		}
		result.Objects = append(result.Objects, h.shown(rendered)...)
	}
	return err
}

// preferBuilt finds sources, ConfigMaps and Secrets among what is built before
// they are looked for elsewhere.
func preferBuilt(options *build.HelmOptions, result *build.Result) {
	built := result.Unstructured()
	options.Lookup = build.Lookups(build.FromObjects(built), options.Lookup)
	find := options.Find
	options.Find = func(ctx context.Context, wanted build.Reference) (*unstructured.Unstructured, error) {
		for _, o := range built {
			if o.GetKind() == wanted.Kind && o.GetNamespace() == wanted.Namespace && o.GetName() == wanted.Name {
				return o, nil
			}
		}
		return find(ctx, wanted)
	}
}
