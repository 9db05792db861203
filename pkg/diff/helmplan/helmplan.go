// Package helmplan determines what helm-controller will do with a HelmRelease, from its status, the revisions
// that Helm stores, and the chart rendered as the next revision.
package helmplan

import (
	"context"
	"encoding/json"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
)

// HelmRelease is a HelmRelease to plan.
type HelmRelease struct {
	// Object has the desired spec and the live status.
	Object *unstructured.Unstructured
	// Twin is the build.Object.Twin of a built object.
	Twin *unstructured.Unstructured
	// Live is the live object, or nil if it does not exist.
	Live *unstructured.Unstructured
	// Render renders the chart as a revision of the release.
	Render func(ctx context.Context, revision int) (*charts.Result, error)
	// Forced plans an upgrade although neither the version of the chart nor the values have
	// changed, as for a chart in a work tree.
	Forced bool
	// Controller returns the version of helm-controller, such as v1.6.5, or "" if it is not known.
	// It is only called if the plan depends on it.
	Controller func(ctx context.Context) string
}

// snapshot is the newest entry of status.history.
type snapshot struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	ChartName string `json:"chartName"`
}

// releasePlan builds the plan of a HelmRelease.
type releasePlan struct {
	HelmRelease
	target           charts.Target
	known            *snapshot // nil if status.history is empty
	history          *helm.History
	historyForbidden bool // no permission to read the history
	result           *charts.Result
	revision         int // revision of result
	plan             dryrun.Plan
}

// Plan returns what helm-controller will do with a HelmRelease. It reads the storage of the
// Helm release and renders the chart.
func Plan(ctx context.Context, client *kube.Client, h HelmRelease) (dryrun.Plan, error) {
	o := &releasePlan{HelmRelease: h}
	var err error
	if o.target, err = charts.TargetOf(h.Object); err != nil {
		return dryrun.Plan{}, err
	}
	o.readStatus()
	if err := o.readHistory(ctx, client); err != nil {
		return dryrun.Plan{}, err
	}
	o.plan = dryrun.Plan{Owner: h.Object, Build: &build.Result{}, Release: &dryrun.Release{Name: o.target.Name, Namespace: o.target.Namespace}}
	step, err := o.step(ctx)
	if err != nil {
		return dryrun.Plan{}, err
	}
	o.plan.Release.Step = step
	if err := o.markUnstable(ctx); err != nil {
		return dryrun.Plan{}, err
	}
	if err := o.fill(ctx); err != nil {
		return dryrun.Plan{}, err
	}
	return o.plan, nil
}

// readStatus reads the newest release from status.history.
func (o *releasePlan) readStatus() {
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

// readHistory reads the Helm release in the status, or the one with the name in the spec.
func (o *releasePlan) readHistory(ctx context.Context, client *kube.Client) error {
	name, storage := o.target.Name, o.target.Storage
	if o.known != nil {
		name = o.known.Name
		if at := field(o.Live, "status.storageNamespace"); at != "" {
			storage = at
		}
	}
	var err error
	o.history, err = helm.Read(ctx, client, storage, name)
	if apierrors.IsForbidden(err) {
		o.historyForbidden, err = true, nil
	}
	return err
}

// step returns the next operation of the controller, and renders the chart for it.
func (o *releasePlan) step(ctx context.Context) (diff.Step, error) {
	last := 0
	if o.historyForbidden && o.known != nil {
		last = o.known.Version
	} else if o.history != nil && o.history.Last.Info.Status != helm.Uninstalled {
		last = o.history.Last.Version
	}
	moved := o.moved()
	revision := last + 1
	if moved {
		revision = 1
	}
	if err := o.render(ctx, revision); err != nil {
		return "", err
	}
	strategy := field(o.Object, "spec.upgrade.chartNameChangeStrategy")
	if o.known != nil && !moved && o.known.ChartName != o.result.Chart && strategy != "InPlaceUpdate" {
		moved = true
		if err := o.render(ctx, 1); err != nil {
			return "", err
		}
	}
	switch {
	case moved:
		return diff.Reinstall, nil
	case last == 0:
		return diff.Install, nil
	case o.Forced || o.historyForbidden || o.outdated():
		return diff.Upgrade, nil
	default:
		return diff.Keep, nil
	}
}

func (o *releasePlan) render(ctx context.Context, revision int) (err error) {
	o.revision = revision
	o.result, err = o.Render(ctx, revision)
	return err
}

// markUnstable renders the chart again if the controller will render it, to find values that differ
// on every rendering.
func (o *releasePlan) markUnstable(ctx context.Context) error {
	if o.plan.Release.Step == diff.Keep {
		return nil
	}
	again, err := o.Render(ctx, o.revision)
	if err != nil {
		return err
	}
	build.MarkUnstable(&o.result.Result, &again.Result)
	return nil
}

// moved reports whether the name or a namespace of the release changes: the controller uninstalls
// the old release first.
func (o *releasePlan) moved() bool {
	if o.known == nil {
		return false
	}
	storage := field(o.Live, "status.storageNamespace")
	return storage != "" && (storage != o.target.Storage || o.known.Namespace != o.target.Namespace || o.known.Name != o.target.Name)
}

// outdated reports whether the deployed release differs from the desired one.
func (o *releasePlan) outdated() bool {
	last := o.history.Last
	if o.known == nil || o.known.Version != last.Version || last.Info.Status != helm.Deployed {
		return true
	}
	chart := last.Chart.Metadata
	return chart.Name != o.result.Chart || chart.Version != o.result.Version || !same(last.Config, o.result.Values) || o.respecified(last)
}

// respecified reports whether a change of the spec changes the rendered objects although chart and
// values are the same.
func (o *releasePlan) respecified(last *helm.Release) bool {
	for _, field := range []string{"postRenderers", "commonMetadata"} {
		was, _, _ := unstructured.NestedFieldNoCopy(o.Live.Object, "spec", field)
		is, _, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", field)
		if !same(was, is) {
			return true
		}
	}
	if controllers.Reconciled(o.Live.Object) {
		return false
	}
	// The release may have been made with another spec: compare the rendered objects.
	stored, err := charts.Stored(o.Object, last.Manifest, nil)
	return err != nil || !slices.EqualFunc(sorted(stored), sorted(o.result.Objects), func(a, b build.Object) bool { return same(a.Object, b.Object) })
}

func sorted(objects []build.Object) []build.Object {
	return slices.SortedFunc(slices.Values(objects), func(a, b build.Object) int {
		return slices.Compare([]string{controllers.VersionedIDOf(a.Unstructured.Object).String()}, []string{controllers.VersionedIDOf(b.Unstructured.Object).String()})
	})
}

// same compares values from different decoders as JSON.
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

// field returns a field of an object as a string.
func field(o *unstructured.Unstructured, path string) string {
	return controllers.Path{path}.String(o.Object)
}
