package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/object"
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
	if o.known != nil && !moved && o.known.ChartName != o.result.Chart && strategy != "InPlace" {
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

// fill puts into the plan what the step calls for.
func (o *outlook) fill() error {
	r := o.plan.Release
	if o.history != nil {
		r.FromClientSide = o.history.Current().ApplyMethod != serverSide
	}
	o.applyMethod()
	if o.result != nil {
		o.plan.Build.SecretValues = append(o.oldSecrets(), o.result.SecretValues...)
		o.plan.Build.Objects = o.result.Objects
		o.plan.Revision = "chart " + o.result.Chart + " " + o.result.Version
		o.ahead()
	} else {
		o.plan.Build.SecretValues = o.oldSecrets()
	}
	return o.last()
}

const serverSide = "ssa"

// applyMethod tells from the spec how objects are applied.
func (o *outlook) applyMethod() {
	r, hr := o.plan.Release, o.Object
	switch r.Step {
	case Install, Reinstall:
		r.ClientSide = field(hr, "spec.install.serverSideApply") == "false"
		r.NoAdoption = field(hr, "spec.install.disableTakeOwnership") == "true"
	default:
		mode := field(hr, "spec.upgrade.serverSideApply")
		r.ClientSide = mode == "disabled" || mode != "enabled" && r.FromClientSide
		r.NoAdoption = field(hr, "spec.upgrade.disableTakeOwnership") == "true"
	}
}

// ahead adds what is applied before the release.
func (o *outlook) ahead() {
	r, hr, action := o.plan.Release, o.Object, "upgrade"
	if r.Step == Keep {
		return
	}
	if r.Step != Upgrade {
		action = "install"
		if field(hr, "spec.install.createNamespace") == "true" && field(hr, "spec.targetNamespace") != "" {
			r.Ahead = append(r.Ahead, build.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": r.Namespace, "labels": map[string]any{"name": r.Namespace}},
			}}})
		}
	}
	r.Ahead = append(r.Ahead, o.result.CRDs...)
	r.CreateOnly = r.ClientSide && field(hr, "spec."+action+".crds") != "CreateReplace"
}

// last reads what the deployed revision has applied.
func (o *outlook) last() error {
	r := o.plan.Release
	switch {
	case o.unread:
		o.fromInventory()
		return nil
	case o.history == nil || r.Step == Install:
		return nil
	}
	stored, err := build.Stored(o.Object, o.history.Current().Manifest, o.plan.Build.SecretValues)
	if err != nil {
		return err
	}
	for _, object := range stored {
		r.Last = append(r.Last, object.Unstructured)
	}
	if r.Step == Keep {
		// Drift is from what was applied, not from what would be rendered now.
		o.plan.Build.Objects = stored
	}
	return nil
}

// fromInventory takes what the controller notes of the release where Helm's
// own books may not be read. Definitions may be from the chart's folder for
// them, where nothing removes them.
func (o *outlook) fromInventory() {
	if o.Live == nil {
		return
	}
	entries, _, _ := unstructured.NestedSlice(o.Live.Object, "status", "inventory", "entries")
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		parsed, err := object.ParseObjMetadata(controllers.Path{"id"}.String(m))
		if err != nil || parsed.GroupKind.Kind == "CustomResourceDefinition" {
			continue
		}
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(parsed.GroupKind.WithVersion(controllers.Path{"v"}.String(m)))
		found.SetNamespace(parsed.Namespace)
		found.SetName(parsed.Name)
		o.plan.Release.Last = append(o.plan.Release.Last, found)
	}
}

// oldSecrets are values of the deployed revision that may have come out of
// Secrets: those that stood in no spec, where there are such references.
func (o *outlook) oldSecrets() []string {
	if o.history == nil || !o.refersToSecrets() {
		return nil
	}
	open := map[string]bool{}
	for _, hr := range []*unstructured.Unstructured{o.Live, o.Object} {
		if hr != nil {
			values, _, _ := unstructured.NestedMap(hr.Object, "spec", "values")
			leaves(values, func(text string) { open[text] = true })
		}
	}
	if o.result != nil {
		leaves(o.result.Values, func(text string) {
			if !slices.Contains(o.result.SecretValues, text) {
				open[text] = true
			}
		})
	}
	var secrets []string
	for _, r := range []*release.Release{o.history.Last, o.history.Deployed} {
		if r != nil {
			leaves(r.Config, func(text string) {
				if !open[text] && text != "" {
					secrets = append(secrets, text)
				}
			})
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

func (o *outlook) refersToSecrets() bool {
	for _, hr := range []*unstructured.Unstructured{o.Live, o.Object} {
		if hr == nil {
			continue
		}
		references, _, _ := unstructured.NestedSlice(hr.Object, "spec", "valuesFrom")
		for _, reference := range references {
			if m, _ := reference.(map[string]any); m["kind"] == "Secret" {
				return true
			}
		}
	}
	return false
}

// field is a field of an object as text.
func field(o *unstructured.Unstructured, path string) string {
	return controllers.Path{path}.String(o.Object)
}

// leaves calls back for every text and number in values.
func leaves(v any, each func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			leaves(below, each)
		}
	case []any:
		for _, below := range v {
			leaves(below, each)
		}
	case nil, bool:
	default:
		each(fmt.Sprint(v))
	}
}
