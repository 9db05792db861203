package diff

import (
	"context"
	"encoding/json"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/release"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// HelmRelease is what is known of a HelmRelease before it is compared.
type HelmRelease struct {
	// Object has the spec that will hold, and the status of the live one.
	Object *unstructured.Unstructured
	// Live is the one on the cluster, nil where there is none.
	Live *unstructured.Unstructured
	// Render renders it as a revision of its release.
	Render func(ctx context.Context, revision int) (*build.HelmResult, error)
	// Forced plans an upgrade although neither the chart's version nor the values
	// have changed, as for a chart that is being worked on.
	Forced bool
}

// snapshot is what the status says of the newest revision.
type snapshot struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	ChartName string `json:"chartName"`
}

// outlook is a HelmRelease on its way to a plan.
type outlook struct {
	HelmRelease
	target  build.Target
	known   *snapshot // nil where the controller knows of no release
	history *release.History
	unread  bool // the history may not be read
	result  *build.HelmResult
	plan    Plan
}

// PlanRelease finds out what the controller will do with a HelmRelease: it
// reads what Helm keeps of the release, and has the chart rendered.
func (e *Engine) PlanRelease(ctx context.Context, h HelmRelease) (Plan, error) {
	o := &outlook{HelmRelease: h}
	var err error
	if o.target, err = build.TargetOf(h.Object); err != nil {
		return Plan{}, err
	}
	o.recall()
	if err := o.read(ctx, e); err != nil {
		return Plan{}, err
	}
	o.plan = Plan{Kustomization: h.Object, Build: &build.Result{}, Release: &Release{Name: o.target.Name, Namespace: o.target.Namespace}}
	step, err := o.step(ctx)
	if err != nil {
		return Plan{}, err
	}
	o.plan.Release.Step = step
	if err := o.fill(); err != nil {
		return Plan{}, err
	}
	return o.plan, nil
}

// recall reads what the controller knows of the release.
func (o *outlook) recall() {
	if o.Live == nil {
		return
	}
	history, _, _ := unstructured.NestedSlice(o.Live.Object, "status", "history")
	if len(history) == 0 {
		return
	}
	var last snapshot
	text, err := json.Marshal(history[0])
	if err == nil && json.Unmarshal(text, &last) == nil && last.Name != "" {
		o.known = &last
	}
}

// read reads the release that the controller knows, or the one that it would
// find under the name.
func (o *outlook) read(ctx context.Context, e *Engine) error {
	name, storage := o.target.Name, o.target.Storage
	if o.known != nil {
		name = o.known.Name
		if at := field(o.Live, "status.storageNamespace"); at != "" {
			storage = at
		}
	}
	var err error
	o.history, err = release.Read(ctx, e.client, storage, name)
	if apierrors.IsForbidden(err) {
		o.unread, err = true, nil
	}
	return err
}

// step decides what the controller will do, and renders the chart on the way.
func (o *outlook) step(ctx context.Context) (Step, error) {
	last := 0
	if o.unread && o.known != nil {
		last = o.known.Version
	} else if o.history != nil && o.history.Last.Info.Status != release.Uninstalled {
		last = o.history.Last.Version
	}
	moved := o.moved()
	revision := last + 1
	if moved {
		revision = 1
	}
	var err error
	if o.result, err = o.Render(ctx, revision); err != nil {
		return "", err
	}
	strategy := field(o.Object, "spec.upgrade.chartNameChangeStrategy")
	if o.known != nil && !moved && o.known.ChartName != o.result.Chart && strategy != "InPlaceUpdate" {
		moved = true
		if o.result, err = o.Render(ctx, 1); err != nil {
			return "", err
		}
	}
	switch {
	case moved:
		return Reinstall, nil
	case last == 0:
		return Install, nil
	case o.Forced || o.unread || o.outdated():
		return Upgrade, nil
	default:
		return Keep, nil
	}
}

// moved tells whether the release is to be another one: the controller
// uninstalls the old one first.
func (o *outlook) moved() bool {
	if o.known == nil {
		return false
	}
	storage := field(o.Live, "status.storageNamespace")
	return storage != "" && (storage != o.target.Storage || o.known.Namespace != o.target.Namespace || o.known.Name != o.target.Name)
}

// outdated tells whether the deployed release is another than the one wanted.
func (o *outlook) outdated() bool {
	last := o.history.Last
	if o.known == nil || o.known.Version != last.Version || last.Info.Status != release.Deployed {
		return true
	}
	chart := last.Chart.Metadata
	return chart.Name != o.result.Chart || chart.Version != o.result.Version || !same(last.Config, o.result.Values) || o.respecified(last)
}

// respecified tells whether the spec changes what is rendered although chart
// and values are the same.
func (o *outlook) respecified(last *release.Release) bool {
	for _, field := range []string{"postRenderers", "commonMetadata"} {
		was, _, _ := unstructured.NestedFieldNoCopy(o.Live.Object, "spec", field)
		is, _, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", field)
		if !same(was, is) {
			return true
		}
	}
	if field(o.Live, "metadata.generation") == field(o.Live, "status.observedGeneration") {
		return false
	}
	// The controller has not seen the spec yet: what it renders tells.
	stored, err := build.Stored(o.Object, last.Manifest, nil)
	return err != nil || !slices.EqualFunc(sorted(stored), sorted(o.result.Objects), func(a, b build.Object) bool { return same(a.Object, b.Object) })
}

func sorted(objects []build.Object) []build.Object {
	return slices.SortedFunc(slices.Values(objects), func(a, b build.Object) int {
		return slices.Compare([]string{RefOf(a.Unstructured).String()}, []string{RefOf(b.Unstructured).String()})
	})
}

// same compares values that came by different ways: numbers are as in JSON.
func same(a, b any) bool {
	x, y := plain(a), plain(b)
	return apiequality.Semantic.DeepEqual(x, y)
}

func plain(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var simple any
	if json.Unmarshal(text, &simple) != nil {
		return v
	}
	if m, ok := simple.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	return simple
}

// field is a field of an object as text.
func field(o *unstructured.Unstructured, path string) string {
	return controllers.Path{path}.String(o.Object)
}
