package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// elsewhereSearched is the maximum number of missing objects to search in other namespaces.
const elsewhereSearched = 5

// Snapshot holds the Flux objects that were read, and their dependency graph. It also describes which objects were not read.
type Snapshot struct {
	// Objects holds the objects that were read. In a survey, healthy objects are reduced, and healthy holds those that no object
	// with a problem depends on.
	Objects map[controllers.ID]controllers.Object
	// Current holds the current versions of objects that are diagnosed in an earlier version.
	Current map[controllers.ID]controllers.Object
	Graph   *tree.Graph

	healthy store
	// revisions caches the revisions of sources.
	revisions map[controllers.ID]string
	// namespaces lists, for a kind and name, the namespaces with such an object.
	namespaces map[[2]string][]string

	// siblings holds the objects of other kinds with the name of a missing one.
	siblings map[controllers.ID][]controllers.ID

	// listed is set if the objects of namespace were listed, where "" means all namespaces. Other objects are read one by one
	// if they are referenced.
	listed    bool
	namespace string
	// refused holds the errors of kinds that could not be listed. narrowed holds the errors of kinds that could be listed only in
	// the namespace within.
	refused, narrowed map[string]error
	within            string
	// hidden reports why the existence of an object is unknown, for given objects. It is nil for objects that were read.
	hidden func(controllers.ID) error
	// absent holds the requested objects that do not exist. unread holds the errors of objects that could not be read.
	absent map[controllers.ID]bool
	unread map[controllers.ID]error
}

// NewSnapshot returns a snapshot without objects.
func NewSnapshot() *Snapshot {
	return &Snapshot{
		Objects: map[controllers.ID]controllers.Object{}, Current: map[controllers.ID]controllers.Object{}, revisions: map[controllers.ID]string{},
		healthy: store{text: map[controllers.ID][]byte{}}, absent: map[controllers.ID]bool{}, unread: map[controllers.ID]error{},
	}
}

// Given returns a snapshot of objects that have already been read. hidden returns the reason why another object is unknown, or
// nil for one that does not exist.
func Given(objects []controllers.Object, hidden func(controllers.ID) error) *Snapshot {
	s := NewSnapshot()
	s.hidden = hidden
	for _, o := range objects {
		s.Objects[controllers.IDOf(o)] = o
	}
	return s
}

// IDs returns all objects that were read.
func (s *Snapshot) IDs() []controllers.ID {
	all := slices.Collect(maps.Keys(s.Objects))
	for t := range s.healthy.text {
		if s.Objects[t] == nil {
			all = append(all, t)
		}
	}
	return all
}

// Link returns an object of the snapshot, or the reason why the snapshot does not contain it.
func (s *Snapshot) Link(t controllers.ID) tree.Link {
	k, known := t.Flux()
	link := tree.Link{Object: t, Kind: k, Live: s.Objects[t]}
	switch {
	case link.Live != nil:
	case !known:
		link.Err = fmt.Errorf("%s is not a Flux kind", t.Kind)
	case s.Hidden(t) != nil:
		link.Err = s.Hidden(t)
	default:
		link.Err = NotFound(k, t.Name)
	}
	return link
}

// NotFound returns the error of the API server for an object that does not exist.
func NotFound(k controllers.Kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, name)
}

// Connect builds the dependency graph of all objects.
func (s *Snapshot) Connect() { s.connect(slices.Collect(maps.Values(s.Objects))) }

func (s *Snapshot) connect(objects []controllers.Object) {
	s.Graph = tree.NewGraph(objects, func(o controllers.ID) bool { return s.Hidden(o) == nil && s.object(o) == nil })
}

// object returns an object that was read, or nil.
func (s *Snapshot) object(t controllers.ID) controllers.Object {
	if o := s.Objects[t]; o != nil {
		return o
	}
	return s.healthy.get(t)
}

// Namespaces returns the sorted namespaces of the objects with the kind and name of a missing one.
func (s *Snapshot) Namespaces(t controllers.ID) []string {
	if s.namespaces == nil {
		s.namespaces = map[[2]string][]string{}
		for _, other := range s.IDs() {
			at := [2]string{other.Kind, other.Name}
			s.namespaces[at] = append(s.namespaces[at], other.Namespace)
		}
	}
	return slices.Sorted(slices.Values(s.namespaces[[2]string{t.Kind, t.Name}]))
}

// Siblings returns the objects in the namespace of a missing object that have its name and another kind of its family.
func (s *Snapshot) Siblings(t controllers.ID) []controllers.ID {
	if found, known := s.siblings[t]; known {
		return found
	}
	var found []controllers.ID
	for _, k := range siblingKinds(t) {
		if other := k.ID(t.Namespace, t.Name); s.object(other) != nil {
			found = append(found, other)
		}
	}
	return found
}

// siblingKinds returns the other kinds that a reference to a missing source may have been intended for.
func siblingKinds(t controllers.ID) []controllers.Kind {
	k, _ := t.Flux()
	if k.Family != "source" {
		return nil
	}
	return slices.DeleteFunc(controllers.Family(k.Family), func(other controllers.Kind) bool { return other.Kind == k.Kind || other.Source != nil })
}

// FindNamespaces searches some of the missing objects in other namespaces, and for objects of other kinds with their name. The result
// is used for hints only, so errors are ignored.
func (s *Snapshot) FindNamespaces(ctx context.Context, c *Cluster) {
	s.siblings = map[controllers.ID][]controllers.ID{}
	s.namespaces = map[[2]string][]string{}
	missing := Sorted(maps.Keys(s.absent))
	var mu sync.Mutex
	var g errgroup.Group
	for _, t := range missing[:min(len(missing), elsewhereSearched)] {
		k, known := t.Flux()
		if !known {
			continue
		}
		for _, other := range siblingKinds(t) {
			g.Go(func() error {
				if o, err := c.Flux(ctx, other.ID(t.Namespace, t.Name)); err == nil && o != nil {
					mu.Lock()
					defer mu.Unlock()
					s.siblings[t] = append(s.siblings[t], other.IDOf(o))
				}
				return nil
			})
		}
		g.Go(func() error {
			at := [2]string{t.Kind, t.Name}
			return c.eachOf(ctx, k, kube.Selection{Name: t.Name, Without: []string{"metadata.managedFields", "spec", "status"}}, func(o controllers.Object) error {
				mu.Lock()
				defer mu.Unlock()
				s.namespaces[at] = append(s.namespaces[at], controllers.Namespace(o))
				return nil
			})
		})
	}
	_ = g.Wait()
}
