package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
	"github.com/fluxkit/flux/pkg/diff/helmplan"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// ReleasePlanner plans and compares HelmReleases.
type ReleasePlanner struct {
	comparer *Comparer
	client   *kube.Client
	Options  *charts.Options
	// local holds the sources with a local directory. localRevision returns their
	// revision, or "" if it is unknown.
	local         build.Sources
	localRevision func(context.Context, controllers.ID) string
	// built is the build that includes the HelmReleases.
	built map[controllers.ID]*unstructured.Unstructured
	// Clusters holds the earlier results: a release may depend on objects of previous
	// ones.
	Clusters *Clusters
	mu       sync.Mutex // guards Clusters
	// controller returns the version of helm-controller.
	controller func(context.Context) string
}

// NewReleasePlanner reads the chart capabilities from the cluster.
func (c *Comparer) NewReleasePlanner(ctx context.Context, h *desired.HelmOptions) (*ReleasePlanner, error) {
	client, err := c.Connect()
	if err != nil {
		return nil, err
	}
	work, err := git.Around(".")
	if err != nil {
		return nil, err
	}
	p := &ReleasePlanner{
		comparer: c, client: client, Clusters: &Clusters{comparer: c, here: client.Config},
		localRevision: func(context.Context, controllers.ID) string { return "" },
	}
	if p.local, err = c.LocalSources(work, nil); err != nil {
		return nil, err
	}
	if p.Options, err = c.HelmBuild(ctx, h, work); err != nil {
		return nil, err
	}
	p.controller = controllerVersion(client, c.FluxNamespace, "helm-controller")
	stored := &upstream.StoredSources{Client: client, Home: c.FluxNamespace}
	var mu sync.Mutex
	p.Options.Sources = func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		tree, err := p.local(ctx, source)
		switch {
		case !errors.Is(err, build.ErrNotFound):
			return tree, err
		case source.Kind == controllers.OCIRepository:
			return nil, err // the artifact of these sources is a chart
		case p.changes(ctx, source):
			return nil, fmt.Errorf("this change also modifies the source: set its directory with --local-sources %s=PATH", source)
		}
		mu.Lock() // StoredSources has a cache
		defer mu.Unlock()
		return stored.Tree(ctx, source)
	}
	p.Options.SourceRevision = func(ctx context.Context, source controllers.ID) string {
		if _, err := p.local(ctx, source); err == nil {
			return p.localRevision(ctx, source)
		}
		mu.Lock()
		defer mu.Unlock()
		artifact, err := stored.Get(ctx, source)
		if err != nil {
			return "" // the chart has already been read, so another reconciliation has changed the source
		}
		return artifact.Revision
	}
	return p, nil
}

// Release returns a HelmRelease with its new spec. It returns a MissingError if there is
// nothing to compare.
func (c *Comparer) Release(ctx context.Context, namespace, name string) (*helmplan.HelmRelease, error) {
	live, err := c.LiveObject(ctx, controllers.HelmRelease, namespace, name)
	if err := c.withoutLive(err); err != nil {
		return nil, err
	}
	hr := live
	if c.File != "" {
		if hr, err = c.HelmReleaseFromFile(ctx, namespace, name); err != nil {
			return nil, err
		}
	}
	return &helmplan.HelmRelease{Object: WithStatus(hr, live), Live: live}, nil
}

// Plan predicts the next action of helm-controller for a HelmRelease. It is
// safe for concurrent use.
func (p *ReleasePlanner) Plan(ctx context.Context, h helmplan.HelmRelease) (dryrun.Plan, error) {
	p.mu.Lock()
	engine, err := p.Clusters.engine(ctx, h.Object)
	p.mu.Unlock()
	if err != nil {
		return dryrun.Plan{}, err
	}
	live := p.Options.Live
	if remote, _, _ := unstructured.NestedMap(h.Object.Object, "spec", "kubeConfig"); remote != nil {
		if live, err = p.remoteFinder(ctx, h.Object); err != nil {
			return dryrun.Plan{}, err
		}
	}
	options := *p.Options
	options.Live, options.Twin = build.Once(live), h.Twin
	find := sync.OnceValue(func() error {
		if options.Chart != nil {
			return nil
		}
		var err error
		options.Chart, options.ChartGeneration, err = p.chart(ctx, h.Object)
		return err
	})
	h.Render = func(ctx context.Context, revision int) (*charts.Result, error) {
		if err := find(); err != nil {
			return nil, err
		}
		options := options
		options.Revision = revision
		return charts.HelmRelease(ctx, h.Object, options)
	}
	h.Controller = p.controller
	return helmplan.Plan(ctx, engine.Client, h)
}

// remoteFinder returns the finder for chart lookups on the target cluster of a
// release.
func (p *ReleasePlanner) remoteFinder(ctx context.Context, hr *unstructured.Unstructured) (build.Finder, error) {
	cfg, err := p.comparer.clusterOf(ctx, hr, p.client.Config)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(cfg)
	if err != nil {
		return nil, err
	}
	return desired.ClusterFinder(client), nil
}

// chartOrigin holds the objects that a chart comes from.
type chartOrigin struct {
	// object is the HelmChart or source whose artifact is the chart.
	object controllers.ID
	// source is the source of the HelmChart.
	source controllers.ID
	// template is the expected spec of the HelmChart or OCIRepository, or nil if
	// the HelmRelease refers to an existing object.
	template map[string]any
}

func chartOriginOf(hr *unstructured.Unstructured) chartOrigin {
	if ref, ok, _ := unstructured.NestedStringMap(hr.Object, "spec", "chartRef"); ok {
		found := controllers.FluxID(ref["kind"], ref["namespace"], ref["name"])
		if found.Namespace == "" {
			found.Namespace = hr.GetNamespace()
		}
		return chartOrigin{object: found, source: found}
	}
	template, _, _ := unstructured.NestedMap(hr.Object, "spec", "chart", "spec")
	if kind, _, _ := unstructured.NestedString(hr.Object, "spec", "chart", "kind"); kind != "" && kind != controllers.HelmChart {
		created := controllers.FluxID(kind, hr.GetNamespace(), hr.GetNamespace()+"-"+hr.GetName())
		return chartOrigin{object: created, source: created, template: template}
	}
	ref, _, _ := unstructured.NestedStringMap(template, "sourceRef")
	source := controllers.FluxID(ref["kind"], ref["namespace"], ref["name"])
	if source.Namespace == "" {
		source.Namespace = hr.GetNamespace()
	}
	chart := controllers.FluxID(controllers.HelmChart, source.Namespace, hr.GetNamespace()+"-"+hr.GetName())
	return chartOrigin{object: chart, source: source, template: template}
}

// chart returns the chart artifact of a HelmRelease, or nil if
// source-controller has none that matches the spec. It also returns the
// generation that its HelmChart will have.
func (p *ReleasePlanner) chart(ctx context.Context, hr *unstructured.Unstructured) (*charts.Chart, int64, error) {
	origin := chartOriginOf(hr)
	_, err := p.local(ctx, origin.source)
	local := err == nil
	if !local && !errors.Is(err, build.ErrNotFound) {
		return nil, 0, err
	}
	if files, _, _ := unstructured.NestedSlice(origin.template, "valuesFiles"); local && len(files) == 0 {
		return nil, 0, nil // the generation is not needed
	}
	live, err := p.comparer.LiveObject(ctx, origin.object.Kind, origin.object.Namespace, origin.object.Name)
	var absent *objref.NotFoundError
	if errors.As(err, &absent) {
		return nil, 1, nil
	}
	if err != nil {
		return nil, 0, err
	}
	generation := live.GetGeneration()
	if origin.template != nil && !matchesTemplate(origin.template, live) {
		return nil, generation + 1, nil
	}
	if local || p.changes(ctx, origin.source) || !observed(live) {
		return nil, generation, nil
	}
	a, ok := artifact.Of(live.Object)
	if !ok {
		return nil, generation, nil
	}
	archive, err := artifact.Fetch(ctx, p.client, a, p.comparer.FluxNamespace)
	if err != nil && ctx.Err() == nil {
		p.comparer.Warn("%s: cannot fetch its artifact (%s); fetching the chart from its source instead", origin.object, err)
		return nil, generation, nil
	}
	chart := &charts.Chart{Archive: archive}
	if origin.object.Kind != controllers.HelmChart {
		chart.Build = charts.VersionMetadata(a.Revision)
	}
	return chart, generation, err
}

// observed reports whether the controller has observed the generation of an
// object.
func observed(o *unstructured.Unstructured) bool {
	generation, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return !ok || generation == o.GetGeneration()
}

// chartDefaults holds the defaults of the API server in HelmChart specs.
var chartDefaults = map[string]string{"version": "*", "reconcileStrategy": "ChartVersion"}

// matchesTemplate reports whether a HelmChart or OCIRepository matches the chart
// template of the HelmRelease.
func matchesTemplate(template map[string]any, chart *unstructured.Unstructured) bool {
	spec, _, _ := unstructured.NestedMap(chart.Object, "spec")
	for _, field := range []string{"url", "ref", "layerSelector", "ignore"} { // of an OCIRepository
		if !equality.Semantic.DeepEqual(spec[field], template[field]) {
			return false
		}
	}
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

// changes reports whether the build modifies a source.
func (p *ReleasePlanner) changes(ctx context.Context, source controllers.ID) bool {
	wanted := p.built[source]
	if wanted == nil {
		return false
	}
	live, err := p.comparer.LiveObject(ctx, source.Kind, source.Namespace, source.Name)
	return err != nil || !isSubset(wanted.Object["spec"], live.Object["spec"])
}

// isSubset reports whether live has every field of desired. live may have
// additional defaults.
func isSubset(desired, live any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		m, _ := live.(map[string]any)
		for key, value := range desired {
			if !isSubset(value, m[key]) {
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
			if !isSubset(value, list[i]) {
				return false
			}
		}
		return true
	default:
		return fmt.Sprint(desired) == fmt.Sprint(live)
	}
}
