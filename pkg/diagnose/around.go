package diagnose

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/inventory"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/tree"
)

// Surroundings holds a Flux object with its sources, dependencies, dependents and diagnosis at one point in time.
type Surroundings struct {
	Link    tree.Link
	Sources []tree.Link
	// Needs lists the dependencies except the sources. NeededBy lists the dependents.
	Needs, NeededBy []*tree.Vertex
	Result          Result
	// Events lists the object's events, newest last. NoEvents is the error that prevented reading them, or nil.
	Events   []event.Event
	NoEvents error
}

// Find returns the object with the given name. It tries the kinds in order, and returns a NotFound error if
// no kind has such an object.
func (d Diagnoser) Find(ctx context.Context, kinds []controllers.Kind, namespace, name string) (controllers.Kind, controllers.Object, error) {
	s := d.begin()
	var targets []controllers.ID
	for _, k := range kinds {
		targets = append(targets, k.ID(namespace, name))
	}
	if err := s.cluster.NewReader(s.snapshot, apierrors.IsForbidden).Read(ctx, targets); err != nil {
		return controllers.Kind{}, nil, err
	}
	for i, t := range targets {
		if o := s.snapshot.Objects[t]; o != nil {
			return kinds[i], o, nil
		}
	}
	for _, t := range targets {
		if err := s.snapshot.Unread(t); err != nil {
			return controllers.Kind{}, nil, err
		}
	}
	return controllers.Kind{}, nil, observe.NotFound(kinds[0], name)
}

// Around diagnoses an object that has already been read, with its dependencies and dependents.
func (d Diagnoser) Around(ctx context.Context, k controllers.Kind, o controllers.Object) (Surroundings, error) {
	t := k.IDOf(o)
	s := d.begin()
	s.needing = []controllers.ID{t}
	around := Surroundings{Result: Result{Checked: 1}}
	var reading sync.WaitGroup
	reading.Go(func() { around.Events, around.NoEvents = s.cluster.Events(ctx, t) })
	err := s.load(ctx, s.needing, apierrors.IsForbidden, func(ctx context.Context, read *observe.Reader) error {
		read.Put(t, o)
		return read.Read(ctx, tree.Mentioned(k, o))
	})
	if err != nil {
		reading.Wait()
		return Surroundings{}, err
	}
	around.Link = s.snapshot.Link(t)
	around.Sources = tree.SourceChain(around.Link, s.snapshot.Link)
	for _, e := range s.snapshot.Graph.From(t) {
		source := slices.ContainsFunc(around.Sources, func(l tree.Link) bool { return l.Object == e.To })
		if e.Relation != "source" && !source {
			around.Needs = append(around.Needs, s.snapshot.Graph.Vertex(e.To))
		}
	}
	r := &around.Result
	if s.diagnose(ctx, r, t) {
		s.addUndelivered(ctx, r, t)
	}
	if s.dependents != nil {
		around.NeededBy = s.dependents.Direct(s.snapshot, t)
	}
	r.Unknown = append(s.evaluation.unknown(r.Causes), r.Unknown...)
	reading.Wait()
	return around, nil
}

// AddInventory adds the missing objects, and the objects being deleted, in the tree of a healthy object.
func (a *Surroundings) AddInventory(ctx context.Context, d Diagnoser, root *tree.Node) {
	k, o := a.Link.Kind, a.Link.Live
	_, deleting := rules.DeletedAt(o)
	if root == nil || k.Manager == "" || k.Suspension.Is(o) || !k.IsReady(o) || deleting {
		return
	}
	checked := d.begin().inventories().CheckTree(ctx, rules.NewSubject(k, o, d.Home), root)
	r, own := &a.Result, len(a.Result.Causes)
	r.Unknown = append(r.Unknown, checked.Unknown...)
	for _, p := range checked.Problems {
		r.Causes = append(r.Causes, incomplete(a.Link.Object, p))
	}
	r.separate(own, d.Now)
}

// incomplete returns the cause of an applier with a problem in its inventory.
func incomplete(owner controllers.ID, p inventory.Problem) Cause {
	return causeOf(owner, rules.Finding{Object: owner, Code: "incomplete", Message: p.Summary}, p.Finding)
}
