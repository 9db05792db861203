package diff

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

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
		o.hooks()
		o.warn()
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
			r.Ahead = append(r.Ahead, build.Object{Ahead: true, Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": r.Namespace, "labels": map[string]any{"name": r.Namespace}},
			}}})
		}
	}
	r.Ahead = append(r.Ahead, o.result.CRDs...)
	r.CreateOnly = r.ClientSide && field(hr, "spec."+action+".crds") != "CreateReplace"
}

// warn says what may come otherwise than it is planned.
func (o *outlook) warn() {
	r, ref := o.plan.Release, RefOf(o.Object)
	say := func(format string, args ...any) {
		r.Warnings = append(r.Warnings, ref.String()+": "+fmt.Sprintf(format, args...))
	}
	if o.unread && o.known != nil {
		say("what Helm keeps of release %s may not be read: an upgrade is taken for granted, and what it removes is told by status.inventory", o.target.Name)
	}
	if r.Step != Upgrade {
		return
	}
	if field(o.Object, "spec.upgrade.preserveValues") == "true" {
		say("spec.upgrade.preserveValues keeps values of the deployed release, which are not rendered here")
	}
	if r.ClientSide && field(o.Object, "spec.upgrade.force") == "true" {
		say("spec.upgrade.force replaces objects: that it takes away what others have set is not shown")
	}
	if o.exhausted() {
		say("its retries are used up: nothing happens until the chart or its values change, or 'flux reconcile helmrelease %s -n %s --reset'", ref.Name, ref.Namespace)
	}
}

// exhausted tells whether the controller has given up on what is planned.
func (o *outlook) exhausted() bool {
	if o.Live == nil || o.Forced || o.history == nil {
		return false
	}
	stalled, _ := controllers.FindCondition(o.Live.Object, "Stalled")
	return stalled.Status == "True" && stalled.Reason == "RetriesExceeded" && same(o.Live.Object["spec"], o.Object.Object["spec"]) &&
		field(o.Live, "status.lastAttemptedRevision") == o.result.Version && same(o.history.Last.Config, o.result.Values)
}

// hooks names what is run besides, with the namespace that it goes to.
func (o *outlook) hooks() {
	r := o.plan.Release
	action := "install"
	if r.Step == Upgrade {
		action = "upgrade"
	}
	if r.Step == Keep || field(o.Object, "spec."+action+".disableHooks") == "true" {
		return
	}
	for _, hook := range o.result.Hooks {
		for _, event := range strings.Split(hook.GetAnnotations()["helm.sh/hook"], ",") {
			if event = strings.TrimSpace(event); event == "pre-"+action || event == "post-"+action {
				ref := r.identify(hook.Unstructured)
				ref.Version = hook.GroupVersionKind().Version
				r.Hooks = append(r.Hooks, ref)
				break
			}
		}
	}
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
		parsed, err := controllers.ParseInventoryID(controllers.Path{"id"}.String(m))
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
