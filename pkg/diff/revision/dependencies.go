package revision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// dependencies are the objects in spec.dependsOn of the Kustomizations and HelmReleases of a side.
type dependencies struct {
	objects map[build.Reference]*unstructured.Unstructured
	needs   map[build.Reference][]build.Reference
	// complete is set if all Kustomizations of the side were built, so that an object that was not
	// found does not exist.
	complete bool
}

func (s *side) dependencies() *dependencies {
	d := &dependencies{objects: map[build.Reference]*unstructured.Unstructured{}, needs: map[build.Reference][]build.Reference{}, complete: true}
	for ref, o := range s.objects {
		d.objects[ref] = o.Unstructured
	}
	for ref, n := range s.byRef {
		if d.objects[ref] == nil {
			d.objects[ref] = n.ks
		}
		// A leaf is not built, and applies nothing that others depend on.
		_, err := s.content(build.SourceOf(n.ks))
		d.complete = d.complete && n.err == nil && err == nil
	}
	for ref, o := range d.objects {
		d.needs[ref] = dependsOn(o)
	}
	return d
}

// dependsOn returns the objects in spec.dependsOn.
func dependsOn(o *unstructured.Unstructured) []build.Reference {
	gvk := o.GroupVersionKind()
	kind, ok := controllers.KindOf(gvk.Group, gvk.Kind)
	if !ok {
		return nil
	}
	var all []build.Reference
	for _, t := range kind.DependenciesOf(o.Object) {
		all = append(all, build.Reference{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name})
	}
	return all
}

// problems returns why objects are never reconciled, by object and in the order of dependencies.
func (d *dependencies) problems() map[build.Reference][]string {
	found := map[build.Reference][]string{}
	for ref, needs := range d.needs {
		for _, needed := range needs {
			if d.objects[needed] == nil {
				found[ref] = append(found[ref], missingDependency+needed.String())
			}
		}
		if cycle := d.cycle(ref); cycle != "" {
			found[ref] = append(found[ref], "circular spec.dependsOn: "+cycle)
		}
	}
	return found
}

const missingDependency = "spec.dependsOn names "

// cycle returns the shortest way from an object through its dependencies back to it.
func (d *dependencies) cycle(from build.Reference) string {
	before := map[build.Reference]build.Reference{}
	for queue := []build.Reference{from}; len(queue) > 0; queue = queue[1:] {
		for _, needed := range d.needs[queue[0]] {
			if _, seen := before[needed]; seen {
				continue
			}
			before[needed] = queue[0]
			if needed != from {
				queue = append(queue, needed)
				continue
			}
			way := []string{from.String()}
			for at := before[from]; at != from; at = before[at] {
				way = append(way, at.String())
			}
			slices.Reverse(way)
			return strings.Join(append([]string{from.String()}, way...), " → ")
		}
	}
	return ""
}

// blocked returns the objects that depend on an object, directly or not.
func (d *dependencies) blocked(by build.Reference) []string {
	dependents := map[build.Reference][]build.Reference{}
	for ref, needs := range d.needs {
		for _, needed := range needs {
			dependents[needed] = append(dependents[needed], ref)
		}
	}
	seen := map[build.Reference]bool{by: true}
	var names []string
	for queue := []build.Reference{by}; len(queue) > 0; queue = queue[1:] {
		for _, ref := range dependents[queue[0]] {
			if !seen[ref] {
				seen[ref] = true
				names = append(names, ref.String())
				queue = append(queue, ref)
			}
		}
	}
	slices.Sort(names)
	return names
}

// checkDependencies reports dependencies that do not exist and circular ones, with what they block:
// as changes if they did not exist before, else as warnings.
func (w *walker) checkDependencies() {
	base, head := w.base.dependencies(), w.head.dependencies()
	known, found := base.problems(), head.problems()
	for _, ref := range sortedReferences(found) {
		for _, problem := range found[ref] {
			same := slices.Contains(known[ref], problem)
			needed, missing := strings.CutPrefix(problem, missingDependency)
			removed := missing && base.has(needed)
			if missing && !removed && !head.complete {
				continue // it may be among what could not be built
			}
			switch {
			case removed:
				problem += ", which this change removes"
			case missing:
				problem += ", which does not exist"
			}
			if blocked := head.blocked(ref); len(blocked) > 0 {
				problem += "; it also blocks " + strings.Join(blocked, ", ")
			}
			if same {
				w.warn("%s is not reconciled: %s", ref, problem)
				continue
			}
			w.blocked = append(w.blocked, &diff.Result{Owner: diff.RefOf(head.objects[ref]), Builds: true, Changes: []diff.Change{
				{Object: diff.RefOf(head.objects[ref]), Action: diff.Blocked, Notes: []string{problem}},
			}})
		}
	}
}

// has reports whether an object with a name as in messages exists.
func (d *dependencies) has(name string) bool {
	for ref := range d.objects {
		if ref.String() == name {
			return true
		}
	}
	return false
}

func sortedReferences(found map[build.Reference][]string) []build.Reference {
	var all []build.Reference
	for ref := range found {
		all = append(all, ref)
	}
	slices.SortFunc(all, func(a, b build.Reference) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}
