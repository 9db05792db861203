package observe

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

const (
	// readsAtOnce is the maximum number of parallel requests for single objects.
	readsAtOnce = 16
	// listInstead is the number of objects of a kind from which one list replaces single requests.
	listInstead = 16
)

// unwanted lists large fields that no diagnosis reads.
var unwanted = []string{"metadata.managedFields.fieldsV1"}

// Reader reads Flux objects one by one into a snapshot and follows their references.
type Reader struct {
	cluster  *Cluster
	snapshot *Snapshot
	// tolerated reports whether an error leaves an object unread instead of ending the diagnosis.
	tolerated func(error) bool
	mu        sync.Mutex
}

// NewReader returns a reader into a snapshot.
func (c *Cluster) NewReader(s *Snapshot, tolerated func(error) bool) *Reader {
	return &Reader{cluster: c, snapshot: s, tolerated: tolerated}
}

// Put adds an object that was read elsewhere.
func (r *Reader) Put(t controllers.ID, o controllers.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snapshot.Objects[t] = o
}

// AnyReady reports whether one of the objects was read and is ready.
func (r *Reader) AnyReady(targets []controllers.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(targets, func(t controllers.ID) bool {
		k, known := t.Flux()
		o := r.snapshot.Objects[t]
		return known && o != nil && k.IsReady(o)
	})
}

func (r *Reader) requested(t controllers.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.snapshot
	return s.Objects[t] != nil || s.absent[t] || s.unread[t] != nil
}

// Follow reads objects and, level by level, all their dependencies.
func (r *Reader) Follow(ctx context.Context, wanted []controllers.ID) error {
	for len(wanted) > 0 {
		if err := r.Read(ctx, wanted); err != nil {
			return err
		}
		next, err := r.producers(ctx, wanted)
		if err != nil {
			return err
		}
		for _, t := range wanted {
			if o := r.snapshot.Objects[t]; o != nil {
				next = append(next, slices.DeleteFunc(tree.Awaited(KindOf(t), o), r.requested)...)
			}
		}
		wanted = next
	}
	return nil
}

// producers reads and returns the objects that should have produced the missing objects among the given ones.
func (r *Reader) producers(ctx context.Context, of []controllers.ID) (found []controllers.ID, err error) {
	for _, t := range of {
		if !r.snapshot.absent[t] {
			continue
		}
		for _, k := range controllers.Producers(KindOf(t)) {
			err := r.cluster.eachOf(ctx, k, kube.Selection{Namespace: t.Namespace, Without: unwanted}, func(o controllers.Object) error {
				if slices.Contains(k.Produces.Targets(o), t) {
					found = append(found, k.IDOf(o))
					return r.Note(k.IDOf(o), o, nil)
				}
				return nil
			})
			if err != nil && !isAbsent(err) && !r.tolerated(err) {
				return nil, err
			}
		}
	}
	return found, nil
}

// Mentioned reads the objects that the given objects watch but do not wait for.
func (r *Reader) Mentioned(ctx context.Context, of []controllers.ID) error {
	var wanted []controllers.ID
	for _, t := range of {
		if o := r.snapshot.Objects[t]; o != nil {
			wanted = append(wanted, tree.Mentioned(KindOf(t), o)...)
		}
	}
	return r.Read(ctx, wanted)
}

// Read reads objects in parallel, and many objects of one kind with one list.
func (r *Reader) Read(ctx context.Context, wanted []controllers.ID) error {
	kinds, seen := map[schema.GroupKind][]controllers.ID{}, map[controllers.ID]bool{}
	for _, t := range wanted {
		if !r.requested(t) && !seen[t] {
			seen[t] = true
			kinds[t.GroupKind()] = append(kinds[t.GroupKind()], t)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtOnce)
	for kind, targets := range kinds {
		k, known := controllers.KindOf(kind.Group, kind.Kind)
		switch {
		case !known:
		case len(targets) > listInstead:
			g.Go(func() error { return r.list(ctx, k, targets) })
		default:
			for _, t := range targets {
				g.Go(func() error { return r.get(ctx, k, t) })
			}
		}
	}
	return g.Wait()
}

func (r *Reader) get(ctx context.Context, k controllers.Kind, t controllers.ID) error {
	object, err := r.cluster.Client.GetKind(ctx, k, t.Namespace, t.Name)
	return r.Note(t, object, err)
}

// Note records the result of a request.
func (r *Reader) Note(t controllers.ID, o controllers.Object, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && o != nil:
		r.snapshot.Objects[t] = o
	case err == nil, isAbsent(err):
		r.snapshot.absent[t] = true
	case r.tolerated(err):
		r.snapshot.unread[t] = err
	default:
		return err
	}
	return nil
}

// list reads objects of a kind with one list of their namespace, or of all namespaces if they are in several.
func (r *Reader) list(ctx context.Context, k controllers.Kind, targets []controllers.ID) error {
	wanted := map[controllers.ID]controllers.Object{}
	selection := kube.Selection{Namespace: targets[0].Namespace, Without: unwanted}
	for _, t := range targets {
		wanted[t] = nil
		if t.Namespace != selection.Namespace {
			selection.Namespace = ""
		}
	}
	err := r.cluster.eachOf(ctx, k, selection, func(o controllers.Object) error {
		if _, is := wanted[k.IDOf(o)]; is {
			wanted[k.IDOf(o)] = o
		}
		return nil
	})
	if apierrors.IsForbidden(err) { // the user may have permission for get but not for list
		for _, t := range targets {
			if err := r.get(ctx, k, t); err != nil {
				return err
			}
		}
		return nil
	}
	for t, o := range wanted {
		if err := r.Note(t, o, err); err != nil {
			return err
		}
	}
	return nil
}

// Flux reads a Flux object. It returns nil if the object does not exist or its kind is unknown or not installed.
func (c *Cluster) Flux(ctx context.Context, t controllers.ID) (controllers.Object, error) {
	k, known := t.Flux()
	if !known {
		return nil, nil
	}
	o, err := c.Client.GetKind(ctx, k, t.Namespace, t.Name)
	if isAbsent(err) {
		return nil, nil
	}
	return o, err
}
