package compare

import (
	"maps"
	"slices"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// checkOperated marks what flux-operator will do and the results do not show: the inputs that a changed provider will export,
// and the controllers of a changed FluxInstance.
func checkOperated(results []*diff.Result, built *build.Result) {
	changed := map[controllers.ID]bool{}
	for _, r := range results {
		for _, c := range r.Changes {
			changed[c.Object.ID] = changed[c.Object.ID] || c.Different()
		}
	}
	for _, o := range built.Objects {
		if id := controllers.IDOf(o.Unstructured.Object); (controllers.Path{"spec.type"}).String(o.Object) == controllers.StaticProvider && id.Kind == controllers.InputProvider {
			delete(changed, id) // its inputs are in its spec
		}
	}
	for _, r := range results {
		kind, _ := r.Owner.Flux()
		if r.Owner.IsFluxInstance() && changed[r.Owner.ID] {
			r.NotCompared = &diff.Omission{Reason: "its definition changes, and the controllers that flux-operator installs are not compared", Affected: true}
		}
		if i := slices.IndexFunc(built.Objects, func(o build.Object) bool { return controllers.IDOf(o.Unstructured.Object) == r.Owner.ID }); i >= 0 && r.Owner.IsResourceSet() {
			if provider, ok := fedBy(kind, built.Objects[i].Object, changed); ok {
				r.NotCompared = &diff.Omission{Reason: provider.String() + " changes: compared with the inputs that it exports now", Affected: true}
			}
		}
	}
}

// fedBy returns a changed input provider of a ResourceSet. A selector may select any provider of the namespace.
func fedBy(kind controllers.Kind, set controllers.Object, changed map[controllers.ID]bool) (controllers.ID, bool) {
	for _, ref := range kind.Refs {
		if ref.Relation != "input" {
			continue
		}
		for _, target := range ref.Targets(set) {
			for _, id := range slices.SortedFunc(maps.Keys(changed), controllers.ID.Compare) {
				if changed[id] && id.Kind == target.Kind && id.Namespace == target.Namespace && (id.Name == target.Name || target.Name == "") {
					return id, true
				}
			}
		}
	}
	return controllers.ID{}, false
}
