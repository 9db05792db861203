package diagnose

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Surroundings are an object of Flux, what it comes from, what needs it, and
// the verdict on it, all as of one moment.
type Surroundings struct {
	Link    tree.Link
	Sources []tree.Link
	// Needs are what the object waits for besides its sources, NeededBy what
	// waits for it.
	Needs, NeededBy []*tree.Vertex
	Verdict         Verdict
}

// Around looks at the object of that name of the first of some kinds that has
// one. That none has is an error of the API (IsNotFound).
func (d Doctor) Around(ctx context.Context, kinds []controllers.Kind, namespace, name string) (Surroundings, error) {
	s, err := d.look(ctx, namespace, nil, apierrors.IsForbidden)
	if err != nil {
		return Surroundings{}, err
	}
	targetIn := func(k controllers.Kind) controllers.Target {
		return controllers.Target{Kind: k.Kind, Namespace: namespace, Name: name}
	}
	i := slices.IndexFunc(kinds, func(k controllers.Kind) bool { return s.objects[targetIn(k)] != nil })
	if i < 0 {
		for _, k := range kinds {
			if err := s.refused[k.Kind]; err != nil {
				return Surroundings{}, err
			}
		}
		return Surroundings{}, apierrors.NewNotFound(schema.GroupResource{Group: kinds[0].Group, Resource: kinds[0].Resource}, name)
	}
	t := targetIn(kinds[i])
	around := Surroundings{Link: s.link(t), Verdict: Verdict{Looked: 1, Unknown: s.unknown}}
	around.Sources = tree.Above(around.Link, s.link)
	for _, e := range s.graph.From(s.vertex(t)) {
		source := slices.ContainsFunc(around.Sources, func(l tree.Link) bool { return l.Object == e.To })
		if e.Relation != "source" && !source {
			around.Needs = append(around.Needs, s.graph.Vertex(e.To))
		}
	}
	for _, e := range s.graph.To(s.vertex(t)) {
		if e.Relation != "resource" {
			around.NeededBy = append(around.NeededBy, s.graph.Vertex(e.From))
		}
	}
	s.consult(ctx, &around.Verdict, t)
	return around, nil
}

// link is an object out of the snapshot.
func (s *snapshot) link(t controllers.Target) tree.Link {
	t = key(t)
	k, known := controllers.FindKind(t.Kind)
	link := tree.Link{Object: s.vertex(t), Kind: k, Live: s.objects[t]}
	switch {
	case link.Live != nil:
	case !known:
		link.Err = fmt.Errorf("%s is no kind of Flux", t.Kind)
	case s.hidden(t) != nil:
		link.Err = s.hidden(t)
	default:
		link.Err = apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, t.Name)
	}
	return link
}
