package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/artifact"
	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
	"github.com/fluxkit/flux/pkg/diff"
)

// ReleasePlanner plans and compares what HelmReleases do.
type ReleasePlanner struct {
	app     *app.App
	client  *kube.Client
	Program *helmprocess.Program
	Options *build.HelmOptions
	// local are the trees of sources that are at hand here.
	local build.Sources
	// built is what the same change brings.
	built map[build.Reference]*unstructured.Unstructured
	// Clusters are compared with: what one release brings, the next may stand on.
	Clusters *Clusters
	mu       sync.Mutex // for clusters
}

// NewReleasePlanner asks the cluster what charts may build on. Its program has
// to be closed.
func NewReleasePlanner(ctx context.Context, a *app.App, o *ReleaseOptions) (*ReleasePlanner, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	work, err := desired.WorkTreeAround(".")
	if err != nil {
		return nil, err
	}
	p := &ReleasePlanner{app: a, client: client, Clusters: &Clusters{App: a, here: client.Config}}
	if p.local, err = o.LocalSources(work, nil); err != nil {
		return nil, err
	}
	if p.Options, p.Program, err = desired.HelmBuild(ctx, a, &o.BuildOptions, &o.HelmOptions, work); err != nil {
		return nil, err
	}
	stored := &desired.StoredSources{Client: client, Home: a.FluxNamespace()}
	var mu sync.Mutex
	p.Options.Sources = func(ctx context.Context, source build.Reference) (fs.FS, error) {
		tree, err := p.local(ctx, source)
		switch {
		case !errors.Is(err, build.ErrNotFound):
			return tree, err
		case source.Kind == "OCIRepository":
			return nil, err // its artifact is a chart, and no tree with one
		case p.changes(ctx, source):
			return nil, fmt.Errorf("the same change makes another source of it: name its folder with --local-sources %s=PATH", source)
		}
		mu.Lock() // it remembers what it has fetched
		defer mu.Unlock()
		return stored.Tree(ctx, source)
	}
	return p, nil
}

// Plan finds out what the controller will do with a HelmRelease. Several may be
// planned at once.
func (p *ReleasePlanner) Plan(ctx context.Context, h diff.HelmRelease) (diff.Plan, error) {
	p.mu.Lock()
	engine, err := p.Clusters.engine(ctx, h.Object)
	p.mu.Unlock()
	if err != nil {
		return diff.Plan{}, err
	}
	live := p.Options.Live
	if remote, _, _ := unstructured.NestedMap(h.Object.Object, "spec", "kubeConfig"); remote != nil {
		if live, err = p.onRemote(ctx, h.Object); err != nil {
			return diff.Plan{}, err
		}
	}
	chart := sync.OnceValues(func() (*build.Chart, error) { return p.chart(ctx, h.Object) })
	h.Render = func(ctx context.Context, revision int) (*build.HelmResult, error) {
		options := *p.Options
		options.Revision, options.Live = revision, live
		if options.Chart == nil {
			var err error
			if options.Chart, err = chart(); err != nil {
				return nil, err
			}
		}
		return build.HelmRelease(ctx, h.Object, options)
	}
	return engine.PlanRelease(ctx, h)
}

// onRemote finds what templates look up on the cluster that a release goes to.
func (p *ReleasePlanner) onRemote(ctx context.Context, hr *unstructured.Unstructured) (build.Finder, error) {
	cfg, err := clusterOf(ctx, p.app, hr, p.client.Config)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(cfg)
	if err != nil {
		return nil, err
	}
	return desired.FinderIn(client), nil
}

// chartOrigin is where the controller takes a chart from.
type chartOrigin struct {
	// object is what has the chart as its artifact: a HelmChart or a source.
	object build.Reference
	// source is what a HelmChart is made from.
	source build.Reference
	// template is what a HelmChart has to look like, nil where any will do.
	template map[string]any
}

func chartOriginOf(hr *unstructured.Unstructured) chartOrigin {
	if ref, ok, _ := unstructured.NestedStringMap(hr.Object, "spec", "chartRef"); ok {
		found := build.Reference{Kind: ref["kind"], Namespace: ref["namespace"], Name: ref["name"]}
		if found.Namespace == "" {
			found.Namespace = hr.GetNamespace()
		}
		return chartOrigin{object: found, source: found}
	}
	template, _, _ := unstructured.NestedMap(hr.Object, "spec", "chart", "spec")
	ref, _, _ := unstructured.NestedStringMap(template, "sourceRef")
	source := build.Reference{Kind: ref["kind"], Namespace: ref["namespace"], Name: ref["name"]}
	if source.Namespace == "" {
		source.Namespace = hr.GetNamespace()
	}
	chart := build.Reference{Kind: "HelmChart", Namespace: source.Namespace, Name: hr.GetNamespace() + "-" + hr.GetName()}
	return chartOrigin{object: chart, source: source, template: template}
}

// chart is the one that source-controller has for a HelmRelease, nil where it
// has none, or another than the spec asks for.
func (p *ReleasePlanner) chart(ctx context.Context, hr *unstructured.Unstructured) (*build.Chart, error) {
	origin := chartOriginOf(hr)
	if _, err := p.local(ctx, origin.source); !errors.Is(err, build.ErrNotFound) {
		return nil, err
	}
	live, err := desired.LiveObject(ctx, p.app, origin.object.Kind, origin.object.Namespace, origin.object.Name)
	var absent *objref.NotFoundError
	if errors.As(err, &absent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if origin.template != nil && !asTemplate(origin.template, live) || p.changes(ctx, origin.source) || !observed(live) {
		return nil, nil
	}
	a, ok := artifact.Of(live.Object)
	if !ok {
		return nil, nil
	}
	archive, err := artifact.Fetch(ctx, p.client, a, p.app.FluxNamespace())
	if err != nil && ctx.Err() == nil {
		p.app.UI.Warning("%s: what it has fetched cannot be had (%s): looking for the chart where it comes from", origin.object, err)
		return nil, nil
	}
	chart := &build.Chart{Archive: archive}
	if origin.object.Kind != "HelmChart" {
		chart.Build = build.VersionMetadata(a.Revision)
	}
	return chart, err
}

// observed tells whether the controller has seen what an object asks for.
func observed(o *unstructured.Unstructured) bool {
	generation, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return !ok || generation == o.GetGeneration()
}

// chartDefaults are what the API server fills into a HelmChart.
var chartDefaults = map[string]string{"version": "*", "reconcileStrategy": "ChartVersion"}

// asTemplate tells whether a HelmChart is what the HelmRelease asks for.
func asTemplate(template map[string]any, chart *unstructured.Unstructured) bool {
	spec, _, _ := unstructured.NestedMap(chart.Object, "spec")
	for _, field := range []string{"chart", "version", "reconcileStrategy", "valuesFiles", "ignoreMissingValuesFiles"} {
		was, is := shownValue(spec, field), shownValue(template, field)
		if was != is {
			return false
		}
	}
	for _, field := range []string{"kind", "name"} {
		was, _, _ := unstructured.NestedString(spec, "sourceRef", field)
		is, _, _ := unstructured.NestedString(template, "sourceRef", field)
		if was != is {
			return false
		}
	}
	return true
}

func shownValue(spec map[string]any, field string) string {
	value := spec[field]
	if value == nil || value == "" {
		value = chartDefaults[field]
	}
	if value == false || value == "" {
		return ""
	}
	return fmt.Sprint(value)
}

// changes tells whether the same change makes another source of one.
func (p *ReleasePlanner) changes(ctx context.Context, source build.Reference) bool {
	wanted := p.built[source]
	if wanted == nil {
		return false
	}
	live, err := desired.LiveObject(ctx, p.app, source.Kind, source.Namespace, source.Name)
	return err != nil || !within(wanted.Object["spec"], live.Object["spec"])
}

// within tells whether all that one value says stands in another, which may
// have defaults besides.
func within(desired, live any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		m, _ := live.(map[string]any)
		for key, value := range desired {
			if !within(value, m[key]) {
				return false
			}
		}
		return true
	case []any:
		list, _ := live.([]any)
		if len(list) != len(desired) {
			return false
		}
		for i, value := range desired {
			if !within(value, list[i]) {
				return false
			}
		}
		return true
	default:
		return fmt.Sprint(desired) == fmt.Sprint(live)
	}
}
