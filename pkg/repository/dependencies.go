package repository

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Dependencies contains the objects in spec.dependsOn of the Kustomizations, HelmReleases and ResourceSets of a graph.
type Dependencies struct {
	// Objects holds the objects of the graph, and Needs the dependencies of each object.
	Objects map[controllers.ID]*unstructured.Unstructured
	Needs   map[controllers.ID][]controllers.ID
	// Complete is set if all Kustomizations were rendered: an object that was not found then does not exist.
	Complete bool

	// by contains the owner that applies each object.
	by map[controllers.ID]controllers.ID
}

// Dependencies returns the dependencies between the objects that were rendered.
func (g *Graph) Dependencies() *Dependencies {
	d := &Dependencies{
		Objects: map[controllers.ID]*unstructured.Unstructured{}, Needs: map[controllers.ID][]controllers.ID{}, Complete: true,
		by: map[controllers.ID]controllers.ID{},
	}
	for id, o := range g.found.objects {
		d.Objects[id], d.by[id] = o.Unstructured, controllers.IDOf(o.by.owner.Object)
	}
	for id, n := range g.found.byID {
		if d.Objects[id] == nil {
			d.Objects[id] = n.owner
		}
		d.Complete = d.Complete && n.err == nil
		if !operator.Renders(n.owner) {
			// A leaf is not rendered: no other object depends on its objects.
			_, err := g.Content(build.SourceOf(n.owner))
			d.Complete = d.Complete && err == nil
		}
	}
	for id, o := range d.Objects {
		if kind, ok := controllers.IDOf(o.Object).Flux(); ok {
			d.Needs[id] = kind.DependenciesOf(o.Object)
		}
	}
	return d
}

// Blocked is an object that is never reconciled because of its dependencies.
type Blocked struct {
	Object controllers.VersionedID
	Reason string
}

// Problem is the reason why an object is never reconciled: a dependency does not exist, is circular, or is applied by the
// object itself.
type Problem struct {
	// Missing is an object that was not found. Charts may install it, or users create it, unless it is a Flux object.
	Missing controllers.ID
	// Own is an object that exists only after the object was reconciled.
	Own controllers.ID
	// Cycle leads from the object through its dependencies back to it.
	Cycle []controllers.ID
}

// Equal reports whether two problems are the same.
func (p Problem) Equal(other Problem) bool {
	return p.Missing == other.Missing && p.Own == other.Own && slices.Equal(p.Cycle, other.Cycle)
}

// MayExist reports whether the graph may not contain the missing object although it exists: only Flux objects of charts are
// followed, and users create objects of other kinds.
func (p Problem) MayExist() bool {
	_, flux := p.Missing.Flux()
	return p.Missing != controllers.ID{} && !flux
}

// Text describes the problem. Removed is set if a change removes the missing dependency.
func (p Problem) Text(removed bool) string {
	switch {
	case p.Cycle != nil:
		return "circular spec.dependsOn: " + controllers.JoinNames(p.Cycle, " → ")
	case p.Own != controllers.ID{}:
		return "spec.dependsOn refers to " + p.Own.String() + ", which the object applies itself"
	case p.Missing.Namespace == "" && !p.MayExist():
		return "spec.dependsOn refers to " + p.Missing.String() + " without a namespace"
	case removed:
		return "spec.dependsOn refers to " + p.Missing.String() + ", which this change removes"
	}
	return "spec.dependsOn refers to " + p.Missing.String() + ", which does not exist"
}

// Problems returns why an object is never reconciled, in the order of its dependencies.
func (d *Dependencies) Problems(of controllers.ID) []Problem {
	var found []Problem
	for _, needed := range d.Needs[of] {
		switch {
		case d.Objects[needed] == nil:
			found = append(found, Problem{Missing: needed})
		case d.applies(of, needed):
			found = append(found, Problem{Own: needed})
		}
	}
	if cycle := d.cycle(of); cycle != nil {
		found = append(found, Problem{Cycle: cycle})
	}
	return found
}

// all returns the objects that are never reconciled. A missing dependency may be in a part
// that was not rendered.
func (d *Dependencies) all() []Blocked {
	var found []Blocked
	for _, id := range slices.SortedFunc(maps.Keys(d.Needs), controllers.ID.Compare) {
		for _, p := range d.Problems(id) {
			if p.Missing == (controllers.ID{}) || d.Complete && !p.MayExist() {
				found = append(found, Blocked{controllers.VersionedIDOf(d.Objects[id].Object), p.Text(false)})
			}
		}
	}
	return found
}

// applies reports whether an owner applies an object, directly or not.
func (d *Dependencies) applies(owner, id controllers.ID) bool {
	for range len(d.by) { // two owners may apply each other
		by, known := d.by[id]
		if !known || by == owner {
			return known && id != owner
		}
		id = by
	}
	return false
}

// cycle returns the shortest path from an object through its dependencies back to it, or nil.
func (d *Dependencies) cycle(from controllers.ID) []controllers.ID {
	before := map[controllers.ID]controllers.ID{}
	for queue := []controllers.ID{from}; len(queue) > 0; queue = queue[1:] {
		for _, needed := range d.Needs[queue[0]] {
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

// Dependents returns the objects that depend on an object, directly or indirectly.
func (d *Dependencies) Dependents(on controllers.ID) []controllers.ID {
	dependents := map[controllers.ID][]controllers.ID{}
	for id, needs := range d.Needs {
		for _, needed := range needs {
			dependents[needed] = append(dependents[needed], id)
		}
	}
	seen := map[controllers.ID]bool{on: true}
	var found []controllers.ID
	for queue := []controllers.ID{on}; len(queue) > 0; queue = queue[1:] {
		for _, id := range dependents[queue[0]] {
			if !seen[id] {
				seen[id] = true
				found = append(found, id)
				queue = append(queue, id)
			}
		}
	}
	slices.SortFunc(found, controllers.ID.Compare)
	return found
}
