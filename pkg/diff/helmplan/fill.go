package helmplan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	semver "k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// fill completes the plan for the step.
func (o *releasePlan) fill(ctx context.Context) error {
	r := o.plan.Release
	if o.history != nil {
		r.FromClientSide = o.history.Current().ApplyMethod != serverSide
	}
	o.applyMethod()
	if o.result != nil {
		o.plan.Build.SecretValues = append(o.oldSecrets(), o.result.SecretValues...)
		o.plan.Build.Objects = o.result.Objects
		o.plan.Revision = "chart " + o.result.Chart + " " + o.result.Version
		o.ahead(ctx)
		o.hooks()
		o.warn()
	} else {
		o.plan.Build.SecretValues = o.oldSecrets()
	}
	return o.last()
}

const serverSide = "ssa"

// applyMethod sets how objects are applied, from the spec.
func (o *releasePlan) applyMethod() {
	r, hr := o.plan.Release, o.Object
	switch r.Step {
	case diff.Install, diff.Reinstall:
		r.ClientSide = field(hr, "spec.install.serverSideApply") == "false"
		r.NoAdoption = field(hr, "spec.install.disableTakeOwnership") == "true"
	default:
		mode := field(hr, "spec.upgrade.serverSideApply")
		r.ClientSide = mode == "disabled" || mode != "enabled" && r.FromClientSide
		r.NoAdoption = field(hr, "spec.upgrade.disableTakeOwnership") == "true"
	}
}

// ahead adds the objects that are applied before the release.
func (o *releasePlan) ahead(ctx context.Context) {
	r, hr, action := o.plan.Release, o.Object, "upgrade"
	if r.Step == diff.Keep {
		return
	}
	if r.Step != diff.Upgrade {
		action = "install"
		if field(hr, "spec.install.createNamespace") == "true" && field(hr, "spec.targetNamespace") != "" {
			r.Ahead = append(r.Ahead, build.Object{Ahead: true, Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": r.Namespace, "labels": map[string]any{"name": r.Namespace}},
			}}})
		}
	}
	r.Ahead = append(r.Ahead, o.result.CRDs...)
	r.CreateOnly = len(o.result.CRDs) > 0 && field(hr, "spec."+action+".crds") != "CreateReplace" && (r.ClientSide || !o.appliesCRDs(ctx))
}

// appliesCRDs reports whether helm-controller applies existing CRDs although the policy is Create.
// Versions 1.5.0 to 1.6.4 do so with server-side apply, which does not fail for an object that
// exists.
func (o *releasePlan) appliesCRDs(ctx context.Context) bool {
	installed := ""
	if o.Controller != nil {
		installed = o.Controller(ctx)
	}
	v, err := semver.ParseSemantic(installed)
	if err != nil {
		o.plan.Release.Warnings = append(o.plan.Release.Warnings, fmt.Sprintf("%s: unknown helm-controller version: versions 1.5.0 to 1.6.4 also update existing CRDs of the chart", controllers.VersionedIDOf(o.Object.Object)))
		return false
	}
	return v.AtLeast(semver.MustParseSemantic("1.5.0")) && v.LessThan(semver.MustParseSemantic("1.6.5"))
}

// warn adds warnings for differences that the plan cannot show.
func (o *releasePlan) warn() {
	r, ref := o.plan.Release, controllers.VersionedIDOf(o.Object.Object)
	warnf := func(format string, args ...any) {
		r.Warnings = append(r.Warnings, ref.String()+": "+fmt.Sprintf(format, args...))
	}
	if o.historyForbidden && o.known != nil {
		warnf("no permission to read the storage of Helm release %s: assuming an upgrade that removes objects from status.inventory", o.target.Name)
	}
	if r.Step != diff.Upgrade {
		return
	}
	if field(o.Object, "spec.upgrade.preserveValues") == "true" {
		warnf("spec.upgrade.preserveValues keeps values of the deployed release, which this diff does not include")
	}
	if r.ClientSide && field(o.Object, "spec.upgrade.force") == "true" {
		warnf("spec.upgrade.force replaces objects: the diff does not show that this removes the fields of other managers")
	}
	if o.exhausted() {
		warnf("retries exhausted: no upgrade until the chart or its values change; to retry, run 'flux reconcile helmrelease %s -n %s --reset'", hint.Quote(ref.Name), hint.Quote(ref.Namespace))
	}
}

// exhausted reports whether the controller no longer retries the planned upgrade.
func (o *releasePlan) exhausted() bool {
	if o.Live == nil || o.Forced || o.history == nil {
		return false
	}
	stalled, _ := controllers.FindCondition(o.Live.Object, "Stalled")
	return stalled.Status == "True" && stalled.Reason == "RetriesExceeded" && same(o.Live.Object["spec"], o.Object.Object["spec"]) &&
		field(o.Live, "status.lastAttemptedRevision") == o.result.Version && same(o.history.Last.Config, o.result.Values)
}

// hooks adds the Helm hooks of the step, with their namespaces.
func (o *releasePlan) hooks() {
	r := o.plan.Release
	action := "install"
	if r.Step == diff.Upgrade {
		action = "upgrade"
	}
	if r.Step == diff.Keep || field(o.Object, "spec."+action+".disableHooks") == "true" {
		return
	}
	for _, hook := range o.result.Hooks {
		if events := charts.HookEvents(hook.Unstructured); slices.Contains(events, "pre-"+action) || slices.Contains(events, "post-"+action) {
			ref := controllers.VersionedID{ID: r.Identify(hook.Unstructured), Version: hook.GroupVersionKind().Version}
			shown := hook.Alias()
			ref.Name = shown.Name
			r.Hooks = append(r.Hooks, ref)
		}
	}
}

// last reads the objects of the deployed revision.
func (o *releasePlan) last() error {
	r := o.plan.Release
	switch {
	case o.historyForbidden:
		o.fromInventory()
		return nil
	case o.history == nil || r.Step == diff.Install:
		return nil
	}
	stored, err := charts.Stored(o.Object, o.history.Current().Manifest, o.plan.Build.SecretValues)
	if err != nil {
		return err
	}
	for _, object := range stored {
		r.Last = append(r.Last, object.Unstructured)
	}
	if r.Step == diff.Keep {
		// Drift is a difference from the applied objects, not from the objects that the chart
		// renders now.
		o.plan.Build.Objects = stored
	}
	return nil
}

// fromInventory reads the deployed objects from the inventory in the status, for users who may not
// read the storage of Helm. It leaves out CRDs, since those from crds/ are never removed.
func (o *releasePlan) fromInventory() {
	if o.Live == nil {
		return
	}
	for _, e := range controllers.Inventory(o.Live.Object) {
		if e.IsCRD() {
			continue
		}
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(e.GroupVersionKind())
		found.SetNamespace(e.ID.Namespace)
		found.SetName(e.ID.Name)
		o.plan.Release.Last = append(o.plan.Release.Last, found)
	}
}
