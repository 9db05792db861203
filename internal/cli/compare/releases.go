package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// Releases compares what the HelmReleases of a build do that the results
// say will be applied. What could not be compared has been reported.
func Releases(
	ctx context.Context, a *app.App, o *Options, h *desired.HelmOptions, p *Plan, built *build.Result, before []*diff.Result,
) (results []*diff.Result, err error) {
	releases, err := releasesIn(ctx, a, p, built, before)
	if err != nil || len(releases) == 0 {
		return nil, err
	}
	planner, err := NewReleasePlanner(ctx, a, &ReleaseOptions{Options: *o, HelmOptions: *h})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, planner.Program.Close()) }()
	planner.among(p, o, built)
	Announce(a, o, "rendering %d HelmReleases", len(releases))
	plans, failures := make([]diff.Plan, len(releases)), make([]error, len(releases))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(app.Concurrency)
	for i, release := range releases {
		g.Go(func() error {
			plans[i], failures[i] = planner.Plan(gctx, release)
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
			result, failure = planner.Clusters.Compare(ctx, plan)
		}
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		if failure != nil {
			a.Report(explainRelease(failure))
			failed = clierr.ErrReported
			continue
		}
		results = append(results, result)
	}
	return results, failed
}

// explainRelease is ExplainRelease where a chart cannot be given by a flag.
func explainRelease(err error) error {
	var source *build.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return clierr.WithHint(fmt.Sprintf("name the folder of the source by --local-sources %s=PATH", source.Source), "%w", err)
	}
	return ExplainRelease(err)
}

// among makes sources, ConfigMaps and Secrets of the same change stand before
// those of the cluster, and the tree that is compared before what is fetched.
func (p *ReleasePlanner) among(plan *Plan, o *Options, built *build.Result) {
	p.Clusters = plan.clusters // they know what the change brings
	clear := &build.Result{}
	p.built = map[build.Reference]*unstructured.Unstructured{}
	for _, object := range built.Objects {
		if _, sealed := object.Object["sops"]; sealed {
			continue // what nobody here can read is taken from the cluster
		}
		clear.Objects = append(clear.Objects, object)
		p.built[build.ReferenceTo(object.Unstructured)] = object.Unstructured
	}
	desired.PreferBuilt(p.Options, clear)
	if o.Path == "" && !o.revised() {
		return
	}
	own, local := build.SourceOf(plan.Ks), p.local
	p.local = func(ctx context.Context, source build.Reference) (fs.FS, error) {
		if tree, err := local(ctx, source); !errors.Is(err, build.ErrNotFound) || source != own {
			return tree, err
		}
		return plan.Tree, nil
	}
}

// releasesIn are the HelmReleases that a build brings, as they will be.
func releasesIn(ctx context.Context, a *app.App, p *Plan, built *build.Result, results []*diff.Result) ([]diff.HelmRelease, error) {
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
		live, err := desired.LiveIfAny(ctx, a, ref)
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
func (p *Plan) applying(ctx context.Context, built, live *unstructured.Unstructured) *unstructured.Unstructured {
	kind, _ := controllers.FindKind("HelmRelease")
	after, err := p.client.DryRun(ctx, kube.Of(kind), built.Object, "kustomize-controller")
	if err != nil {
		return WithStatus(built, live)
	}
	return WithStatus(&unstructured.Unstructured{Object: after}, live)
}

// ExplainRelease adds the way out to what keeps objects from being compared.
func ExplainRelease(err error) error {
	var values *build.VariablesError
	if apierrors.IsForbidden(err) && errors.As(err, &values) {
		return clierr.WithHint("a HelmRelease is rendered with your own permissions, which have to include what its values come from", "%w", err)
	}
	if apierrors.IsForbidden(err) {
		return clierr.WithHint("diff asks the API server for dry runs, which need the permissions to get, list and patch what is compared", "%w", err)
	}
	return desired.ExplainHelm(err)
}
