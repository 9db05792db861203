package audit

import (
	"fmt"
	"slices"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// missingDependencies finds objects that require a CustomResourceDefinition, ConfigMap or Secret that another owner applies,
// possibly later.
func missingDependencies(s *state, o *Object) []hit {
	if controllers.IsRemote(o.Owner.Object) {
		return nil
	}
	var found []hit
	owner := controllers.IDOf(o.Owner.Object)
	if installers := s.crds[kind{o.ID.Group, o.ID.Kind}]; len(installers) == 1 && !s.ordered(owner, installers[0]) {
		found = append(found, hit{
			field: "kind", message: fmt.Sprintf("%s does not depend on %s, which installs the CustomResourceDefinition", owner, installers[0]),
			fix: s.remedy(owner, installers[0]),
		})
	}
	for _, at := range settingsOf(o) {
		appliers := s.appliers[at.id]
		if len(appliers) != 1 || text(o, at.field+".optional") == "true" || s.ordered(o.ID, appliers[0]) || appliers[0] == owner {
			continue
		}
		found = append(found, hit{
			field: at.field, message: fmt.Sprintf("%s does not depend on %s, which applies %s", o.ID, appliers[0], at.id), fix: s.remedy(o.ID, appliers[0]),
		})
	}
	return found
}

// ordered reports whether later is reconciled after earlier: it depends on earlier, or one of them applies the other, in each
// case directly or through the owners that apply them.
func (s *state) ordered(later, earlier controllers.ID) bool {
	before, after := s.ancestors(earlier), s.ancestors(later)
	if slices.Contains(before, later) || slices.Contains(after, earlier) {
		return true
	}
	seen := map[controllers.ID]bool{}
	for queue := after; len(queue) > 0; queue = queue[1:] {
		o := s.byID[queue[0]]
		if o == nil {
			continue
		}
		k, _ := o.ID.Flux()
		for _, id := range k.DependenciesOf(o.Unstructured.Object) {
			if slices.Contains(before, id) {
				return true
			}
			if !seen[id] {
				seen[id] = true
				queue = append(queue, s.ancestors(id)...)
			}
		}
	}
	return false
}

// ancestors returns an object and the owners that apply it, directly or indirectly.
func (s *state) ancestors(id controllers.ID) []controllers.ID {
	all := []controllers.ID{id}
	for i := 0; i < len(all); i++ {
		for _, owner := range s.appliers[all[i]] {
			if !slices.Contains(all, owner) {
				all = append(all, owner)
			}
		}
	}
	return all
}

// remedy describes where to set spec.dependsOn: for objects of different kinds, in the Kustomizations that apply them.
func (s *state) remedy(later, earlier controllers.ID) string {
	from, to := later, earlier
	if from.Kind != to.Kind {
		from, to = s.kustomization(from), s.kustomization(to)
	}
	return fmt.Sprintf("add %s to spec.dependsOn of %s", to.Name, from)
}

// kustomization returns the nearest Kustomization that applies an object, which may be the object itself.
func (s *state) kustomization(id controllers.ID) controllers.ID {
	for _, ancestor := range s.ancestors(id) {
		if o := s.byID[ancestor]; o != nil && build.IsKustomization(o.Unstructured) {
			return ancestor
		}
	}
	return id
}
