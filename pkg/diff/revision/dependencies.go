package revision

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// dependencies are the objects in spec.dependsOn of the Kustomizations and HelmReleases of a side.
type dependencies struct {
	objects map[controllers.ID]*unstructured.Unstructured
	needs   map[controllers.ID][]controllers.ID
	// complete is set if all Kustomizations of the side were built, so that an object that was not
	// found does not exist.
	complete bool
}

func (s *side) dependencies() *dependencies {
	d := &dependencies{objects: map[controllers.ID]*unstructured.Unstructured{}, needs: map[controllers.ID][]controllers.ID{}, complete: true}
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
func dependsOn(o *unstructured.Unstructured) []controllers.ID {
	gvk := o.GroupVersionKind()
	kind, ok := controllers.KindOf(gvk.Group, gvk.Kind)
	if !ok {
		return nil
	}
	return kind.DependenciesOf(o.Object)
}

// problem is why an object is never reconciled: a dependency does not exist, or is circular.
type problem struct {
	missing controllers.ID
	// cycle leads from the object through its dependencies back to it.
	cycle []controllers.ID
}

func (p problem) equal(other problem) bool {
	return p.missing == other.missing && slices.Equal(p.cycle, other.cycle)
}

// text describes the problem. Removed is set if the change removes the missing dependency.
func (p problem) text(removed bool) string {
	switch {
	case p.cycle != nil:
		return "circular spec.dependsOn: " + strings.Join(names(p.cycle), " → ")
	case removed:
		return "spec.dependsOn names " + p.missing.String() + ", which this change removes"
	}
	return "spec.dependsOn names " + p.missing.String() + ", which does not exist"
}

// problems returns why an object is never reconciled, in the order of its dependencies.
func (d *dependencies) problems(of controllers.ID) []problem {
	var found []problem
	for _, needed := range d.needs[of] {
		if d.objects[needed] == nil {
			found = append(found, problem{missing: needed})
		}
	}
	if cycle := d.cycle(of); cycle != nil {
		found = append(found, problem{cycle: cycle})
	}
	return found
}

// cycle returns the shortest way from an object through its dependencies back to it, or nil.
func (d *dependencies) cycle(from controllers.ID) []controllers.ID {
	before := map[controllers.ID]controllers.ID{}
	for queue := []controllers.ID{from}; len(queue) > 0; queue = queue[1:] {
		for _, needed := range d.needs[queue[0]] {
			if _, seen := before[needed]; seen {
				continue
			}
			before[needed] = queue[0]
			if needed != from {
				queue = append(queue, needed)
				continue
			}
			way := []controllers.ID{from}
			for at := before[from]; at != from; at = before[at] {
				way = append(way, at)
			}
			way = append(way, from)
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

// blocked returns the objects that depend on an object, directly or not.
func (d *dependencies) blocked(by controllers.ID) []controllers.ID {
	dependents := map[controllers.ID][]controllers.ID{}
	for ref, needs := range d.needs {
		for _, needed := range needs {
			dependents[needed] = append(dependents[needed], ref)
		}
	}
	seen := map[controllers.ID]bool{by: true}
	var found []controllers.ID
	for queue := []controllers.ID{by}; len(queue) > 0; queue = queue[1:] {
		for _, ref := range dependents[queue[0]] {
			if !seen[ref] {
				seen[ref] = true
				found = append(found, ref)
				queue = append(queue, ref)
			}
		}
	}
	slices.SortFunc(found, controllers.ID.Compare)
	return found
}

// checkDependencies reports dependencies that do not exist and circular ones, with what they block:
// as changes if they did not exist before, else as warnings.
func (w *walker) checkDependencies() {
	base, head := w.base.dependencies(), w.head.dependencies()
	for _, ref := range slices.SortedFunc(maps.Keys(head.needs), controllers.ID.Compare) {
		known := base.problems(ref)
		for _, p := range head.problems(ref) {
			removed := p.cycle == nil && base.objects[p.missing] != nil
			if p.cycle == nil && !removed && !head.complete {
				continue // it may be among what could not be built
			}
			text := p.text(removed)
			if blocked := head.blocked(ref); len(blocked) > 0 {
				text += "; it also blocks " + strings.Join(names(blocked), ", ")
			}
			if slices.ContainsFunc(known, p.equal) {
				w.warn("%s is not reconciled: %s", ref, text)
				continue
			}
			w.blocked = append(w.blocked, &diff.Result{Owner: controllers.VersionedIDOf(head.objects[ref].Object), Builds: true, Changes: []diff.Change{
				{Object: controllers.VersionedIDOf(head.objects[ref].Object), Action: diff.Blocked, Notes: []string{text}},
			}})
		}
	}
}

func names(references []controllers.ID) []string {
	all := make([]string, len(references))
	for i, ref := range references {
		all[i] = ref.String()
	}
	return all
}
