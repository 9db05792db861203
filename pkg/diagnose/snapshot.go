package diagnose

import (
	"maps"
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// snapshot holds the Flux objects that were read, and their dependency graph. It sends no requests.
type snapshot struct {
	// objects holds the objects that were read. In a survey, healthy objects are reduced, and well
	// holds those on which no object with a problem depends.
	objects map[controllers.ID]controllers.Object
	well    store
	graph   *tree.Graph
	// revisions caches the revisions of sources.
	revisions map[controllers.ID]string
	// now holds the current versions of objects that are diagnosed in an earlier version.
	now map[controllers.ID]controllers.Object
	view
	// names holds the namespaces of the objects with a kind and name.
	names map[[2]string][]string
}

func newSnapshot() *snapshot {
	return &snapshot{
		well: store{text: map[controllers.ID][]byte{}}, objects: map[controllers.ID]controllers.Object{},
		now: map[controllers.ID]controllers.Object{}, revisions: map[controllers.ID]string{},
	}
}

// targets returns all objects that were read.
func (s *snapshot) targets() []controllers.ID {
	all := slices.Collect(maps.Keys(s.objects))
	for t := range s.well.text {
		if s.objects[t] == nil {
			all = append(all, t)
		}
	}
	return all
}

// connect builds the dependency graph of the objects.
func (s *snapshot) connect(objects []controllers.Object) {
	s.graph = tree.NewGraph(objects, true, func(o controllers.ID) bool { return s.hidden(o) == nil && s.object(o) == nil })
}

// namesakes returns the namespaces of the objects with the name of a missing
// one.
func (s *snapshot) namesakes(t controllers.ID) []string {
	if s.names == nil {
		s.names = map[[2]string][]string{}
		for _, other := range s.targets() {
			at := [2]string{other.Kind, other.Name}
			s.names[at] = append(s.names[at], other.Namespace)
		}
	}
	return s.names[[2]string{t.Kind, t.Name}]
}

// kindOf returns the row of an object in the catalog, an empty one for an object that is not a Flux object.
func kindOf(t controllers.ID) controllers.Kind {
	k, _ := t.Flux()
	return k
}

func kindNamed(o controllers.Object) controllers.Kind { return kindOf(controllers.IDOf(o)) }
