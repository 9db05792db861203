package diagnose

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Doctor finds out why objects of Flux are not as they should be. It reads
// what the controllers say, follows references to what is at the root of it,
// and asks pods, events and logs about that. It changes nothing.
type Doctor struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	Now  time.Time
}

// patienceWithNews is how long a controller may take to begin with what its
// source has fetched before that is told as trouble.
const patienceWithNews = time.Minute

// Everything looks at all objects of Flux and at the controllers. What has one
// root is one case.
func (d Doctor) Everything(ctx context.Context) (Verdict, error) {
	s, err := d.look(ctx, "", nil, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Looked: len(s.objects), Unknown: s.unknown}
	for _, name := range sortedKeys(s.down) {
		s.add(&v, controllers.Target{}, []Finding{s.down[name]})
	}
	for _, vertex := range s.graph.Vertices {
		t := target(vertex.Object)
		o, there := s.objects[t]
		if !there || s.kindOf(t).Suspension.Is(o) {
			continue
		}
		if chain := s.chain(t); len(chain) > 0 {
			s.add(&v, t, chain)
		}
	}
	slices.SortStableFunc(v.Cases, func(a, b Case) int { return len(b.Blocks) - len(a.Blocks) })
	for i := range v.Cases {
		s.examine(ctx, &v.Cases[i])
	}
	return v, nil
}

// add puts an object's chain to the case of its root.
func (s *snapshot) add(v *Verdict, t controllers.Target, chain []Finding) {
	root := chain[len(chain)-1]
	i := v.caseOf(root)
	if i < 0 {
		v.Cases = append(v.Cases, Case{Object: root.Object, Root: root, Chain: []Finding{root}})
		i = len(v.Cases) - 1
	}
	if t != root.Object && t != (controllers.Target{}) {
		v.Cases[i].Blocks = append(v.Cases[i].Blocks, t)
	}
}

// Object looks at one object of Flux. That it is not there is an error of the
// API (IsNotFound).
func (d Doctor) Object(ctx context.Context, k controllers.Kind, namespace, name string) (Verdict, error) {
	s, err := d.look(ctx, namespace, nil, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	t := controllers.Target{Kind: k.Kind, Namespace: namespace, Name: name}
	if _, there := s.objects[t]; !there {
		if err := s.refused[k.Kind]; err != nil {
			return Verdict{}, err
		}
		return Verdict{}, apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Resource}, name)
	}
	v := Verdict{Looked: 1, Unknown: s.unknown}
	s.consult(ctx, &v, t)
	return v, nil
}

// consult adds the case of an object, and those of what keeps newer revisions
// from coming to it.
func (s *snapshot) consult(ctx context.Context, v *Verdict, t controllers.Target) {
	own := len(v.Cases)
	if chain := s.chain(t); len(chain) > 0 {
		v.Cases = append(v.Cases, s.caseOf(t, chain))
	}
	s.stale(v, t)
	for i := range v.Cases[own:] {
		s.examine(ctx, &v.Cases[own+i])
	}
}

// stale adds the cases of what keeps newer revisions from coming to an object.
func (s *snapshot) stale(v *Verdict, t controllers.Target) {
	for _, e := range s.graph.From(s.vertex(t)) {
		if e.Relation != "source" && e.Relation != "image" {
			continue
		}
		up := target(e.To)
		chain := s.chain(up)
		if len(chain) == 0 {
			continue
		}
		root := chain[len(chain)-1]
		if v.caseOf(root) >= 0 {
			continue
		}
		first := Finding{Object: t, Code: "stale", Message: "nothing newer comes from " + up.String()}
		v.Cases = append(v.Cases, s.caseOf(t, append([]Finding{first}, chain...)))
	}
}

// caseOf puts a chain together with what else its root blocks.
func (s *snapshot) caseOf(t controllers.Target, chain []Finding) Case {
	c := Case{Object: t, Root: chain[len(chain)-1], Chain: chain}
	for _, vertex := range s.graph.Vertices {
		other := target(vertex.Object)
		if other == c.Root.Object || other == t {
			continue
		}
		if slices.ContainsFunc(vertex.BlockedBy, func(o tree.Object) bool { return target(o) == c.Root.Object }) {
			c.Blocks = append(c.Blocks, other)
		}
	}
	return c
}
