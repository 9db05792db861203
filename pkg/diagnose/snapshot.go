package diagnose

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// snapshot holds the Flux objects that were read, and their dependency graph. It sends no requests.
type snapshot struct {
	// objects holds the objects that were read. In a survey, healthy objects are reduced, and well
	// holds those on which no object with a problem depends.
	objects map[controllers.Target]controllers.Object
	well    store
	graph   *tree.Graph
	// revisions caches the revisions of sources.
	revisions map[controllers.Target]string
	// now holds the current versions of objects that are diagnosed in an earlier version.
	now map[controllers.Target]controllers.Object
	view
	// names holds the namespaces of the objects with a kind and name.
	names map[[2]string][]string
}

func newSnapshot() *snapshot {
	return &snapshot{
		well: store{text: map[controllers.Target][]byte{}}, objects: map[controllers.Target]controllers.Object{},
		now: map[controllers.Target]controllers.Object{}, revisions: map[controllers.Target]string{},
	}
}

// targets returns all objects that were read.
func (s *snapshot) targets() []controllers.Target {
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
	s.graph = tree.NewGraph(objects, true, func(o tree.Object) bool { return s.hidden(target(o)) == nil && s.object(target(o)) == nil })
}

// namesakes returns the namespaces of the objects with the name of a missing
// one.
func (s *snapshot) namesakes(t controllers.Target) []string {
	if s.names == nil {
		s.names = map[[2]string][]string{}
		for _, other := range s.targets() {
			at := [2]string{other.Kind, other.Name}
			s.names[at] = append(s.names[at], other.Namespace)
		}
	}
	return s.names[[2]string{t.Kind, t.Name}]
}

func kindOf(t controllers.Target) controllers.Kind {
	k, _ := controllers.FindKind(t.Kind)
	return k
}

func kindNamed(o controllers.Object) controllers.Kind {
	k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
	return k
}

func vertex(t controllers.Target) tree.Object {
	k := kindOf(t)
	return tree.Object{Namespace: t.Namespace, Name: t.Name, GroupKind: schema.GroupKind{Group: k.Group, Kind: k.Kind}}
}

func target(o tree.Object) controllers.Target {
	return controllers.Target{Kind: o.GroupKind.Kind, Namespace: o.Namespace, Name: o.Name}
}
