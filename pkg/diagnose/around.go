package diagnose

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Surroundings are a Flux object with its sources, dependencies, dependents and
// verdict at one point in time.
type Surroundings struct {
	Link    tree.Link
	Sources []tree.Link
	// Needs are the dependencies without the sources. NeededBy are the
	// dependents.
	Needs, NeededBy []*tree.Vertex
	Verdict         Verdict
	// Events are the events of the object, newest last. NoEvents is the error
	// if they could not be read.
	Events   []event.Event
	NoEvents error
}

// Find returns the object of the given name from the first of the kinds that
// has one, or a NotFound error.
func (d Doctor) Find(ctx context.Context, kinds []controllers.Kind, namespace, name string) (controllers.Kind, controllers.Object, error) {
	read := d.newReader(apierrors.IsForbidden)
	var targets []controllers.ID
	for _, k := range kinds {
		targets = append(targets, k.ID(namespace, name))
	}
	if err := read.read(ctx, targets); err != nil {
		return controllers.Kind{}, nil, err
	}
	for i, t := range targets {
		if read.objects[t] != nil {
			return kinds[i], read.objects[t], nil
		}
	}
	for _, t := range targets {
		if err := read.unread[t]; err != nil {
			return controllers.Kind{}, nil, err
		}
	}
	return controllers.Kind{}, nil, apierrors.NewNotFound(schema.GroupResource{Group: kinds[0].Group, Resource: kinds[0].Resource}, name)
}

// Around diagnoses an object that was read before, with its dependencies and
// dependents.
func (d Doctor) Around(ctx context.Context, k controllers.Kind, o controllers.Object) (Surroundings, error) {
	t := k.IDOf(o)
	s := d.newDiagnosis()
	var around Surroundings
	var reading sync.WaitGroup
	reading.Go(func() { around.Events, around.NoEvents = s.workloads.history.of(ctx, t) })
	if err := s.inspectAround(ctx, k, o); err != nil {
		reading.Wait()
		return Surroundings{}, err
	}
	around.Link, around.Verdict = s.link(t), Verdict{Looked: 1}
	around.Sources = tree.SourceChain(around.Link, s.link)
	for _, e := range s.graph.From(t) {
		source := slices.ContainsFunc(around.Sources, func(l tree.Link) bool { return l.Object == e.To })
		if e.Relation != "source" && !source {
			around.Needs = append(around.Needs, s.graph.Vertex(e.To))
		}
	}
	v := &around.Verdict
	s.needing = []controllers.ID{t}
	if s.consult(ctx, v, t) && s.deliveries.delivers(t) {
		s.deliveries.undelivered(ctx, v, t)
	}
	if s.dependent != nil {
		around.NeededBy = s.dependent.direct(s.snapshot, t)
	}
	v.Unknown = append(s.unknown(v.Cases), v.Unknown...)
	reading.Wait()
	return around, nil
}

// link returns an object of the snapshot.
func (s *snapshot) link(t controllers.ID) tree.Link {
	k, known := t.Flux()
	link := tree.Link{Object: t, Kind: k, Live: s.objects[t]}
	switch {
	case link.Live != nil:
	case !known:
		link.Err = fmt.Errorf("%s is not a Flux kind", t.Kind)
	case s.hidden(t) != nil:
		link.Err = s.hidden(t)
	default:
		link.Err = apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, t.Name)
	}
	return link
}
