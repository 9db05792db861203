package builds

import (
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/repository"
)

// hooks returns the changes of the hooks of a HelmRelease: those of the new build, then those that Helm no longer runs.
func (d Pair) hooks(c *between, known scopes) []diff.Change {
	var changes []diff.Change
	before, after := d.hooksOf(d.Before), d.hooksOf(d.After)
	add := func(side *repository.Rendering, o build.Object, note string, change func(ref controllers.VersionedID) diff.Change) {
		found := known.note(side, change(known.ref(side, o)))
		if found.Hook = strings.Join(charts.HookEvents(o.Unstructured), ","); found.Different() {
			found.Notes = append(found.Notes, note+found.Hook)
		}
		changes = append(changes, found)
	}
	for _, o := range after {
		at := slices.IndexFunc(before, func(old build.Object) bool { return d.Before.ID(old) == d.After.ID(o) })
		var old build.Object
		if at >= 0 {
			old = before[at]
		}
		add(d.After, o, "Helm hook: ", func(ref controllers.VersionedID) diff.Change { return c.desired(ref, old, at >= 0, o, "") })
	}
	for _, o := range before {
		if d.After == nil || slices.ContainsFunc(after, func(young build.Object) bool { return d.After.ID(young) == d.Before.ID(o) }) {
			continue
		}
		add(d.Before, o, "Helm no longer runs this hook: ", func(ref controllers.VersionedID) diff.Change {
			if c.unstableName(o) { // its counterpart is reported
				return diff.Change{Object: ref, Action: diff.Skipped, Reason: diff.UnstableName}
			}
			return c.finish(diff.Change{Object: ref, Action: diff.Changed}, o, build.Object{})
		})
	}
	return changes
}

// hooksOf returns the hooks that helm-controller runs. It runs tests only if they are enabled.
func (d Pair) hooksOf(r *repository.Rendering) []build.Object {
	if r == nil {
		return nil
	}
	action := "upgrade"
	if d.Before == nil {
		action = "install"
	}
	enabled := func(field string) bool { return controllers.Path{field}.String(r.Owner.Object) == "true" }
	if enabled("spec." + action + ".disableHooks") {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Hooks.Objects), func(o build.Object) bool {
		return !enabled("spec.test.enable") && !slices.ContainsFunc(charts.HookEvents(o.Unstructured), func(event string) bool { return !strings.HasPrefix(event, "test") })
	})
}
