package diagnose

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

const (
	// readsAtOnce is the maximum number of parallel requests for single
	// objects.
	readsAtOnce = 16
	// listInstead is the number of objects of a kind from which one list
	// replaces single requests.
	listInstead = 16
	// elsewhereAsked is the maximum number of missing objects to search in
	// other namespaces.
	elsewhereAsked = 5
)

// unwanted lists large fields that no diagnosis reads.
var unwanted = []string{"metadata.managedFields.fieldsV1"}

// reader reads Flux objects one by one and follows their references.
type reader struct {
	Doctor
	bearable func(error) bool

	mu      sync.Mutex
	objects map[controllers.ID]controllers.Object
	// absent holds the requested objects that do not exist. unread holds the errors of objects that
	// could not be read.
	absent map[controllers.ID]bool
	unread map[controllers.ID]error
}

func (d Doctor) newReader(bearable func(error) bool) *reader {
	return &reader{
		Doctor: d, bearable: bearable, objects: map[controllers.ID]controllers.Object{},
		absent: map[controllers.ID]bool{}, unread: map[controllers.ID]error{},
	}
}

// put adds an object that was read elsewhere.
func (r *reader) put(t controllers.ID, o controllers.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects[t] = o
}

// ready reports whether an object was read and is ready.
func (r *reader) ready(t controllers.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, known := t.Flux()
	return known && r.objects[t] != nil && k.IsReady(r.objects[t])
}

func (r *reader) asked(t controllers.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[t] != nil || r.absent[t] || r.unread[t] != nil
}

// follow reads objects and, level by level, all their dependencies.
func (r *reader) follow(ctx context.Context, wanted []controllers.ID) error {
	for len(wanted) > 0 {
		if err := r.read(ctx, wanted); err != nil {
			return err
		}
		var next []controllers.ID
		for _, t := range wanted {
			next = append(next, r.above(t)...)
		}
		wanted = next
	}
	return nil
}

// above returns the dependencies of an object that were not requested yet.
func (r *reader) above(t controllers.ID) []controllers.ID {
	o := r.objects[t]
	k, _ := t.Flux()
	if o == nil {
		return nil
	}
	var next []controllers.ID
	for _, up := range tree.Awaited(k, o) {
		if !r.asked(up) {
			next = append(next, up)
		}
	}
	return next
}

// read reads objects in parallel, and many objects of one kind with one list.
func (r *reader) read(ctx context.Context, wanted []controllers.ID) error {
	kinds, seen := map[schema.GroupKind][]controllers.ID{}, map[controllers.ID]bool{}
	for _, t := range wanted {
		if !r.asked(t) && !seen[t] {
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

func (r *reader) get(ctx context.Context, k controllers.Kind, t controllers.ID) error {
	object, err := r.Client.GetKind(ctx, k, t.Namespace, t.Name)
	return r.note(t, object, err)
}

// note records the result of a request.
func (r *reader) note(t controllers.ID, o controllers.Object, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kindMissing *kube.MissingKindError
	switch {
	case err == nil && o != nil:
		r.objects[t] = o
	case err == nil, apierrors.IsNotFound(err), errors.As(err, &kindMissing):
		r.absent[t] = true
	case r.bearable(err):
		r.unread[t] = err
	default:
		return err
	}
	return nil
}

// list reads objects of a kind with one list of their namespace, or of all
// namespaces if they are in several.
func (r *reader) list(ctx context.Context, k controllers.Kind, targets []controllers.ID) error {
	wanted := map[controllers.ID]controllers.Object{}
	selection := kube.Selection{Namespace: targets[0].Namespace, Without: unwanted}
	for _, t := range targets {
		wanted[t] = nil
		if t.Namespace != selection.Namespace {
			selection.Namespace = ""
		}
	}
	err := r.Client.WithServedVersion(ctx, k, func(resource kube.Resource) error {
		_, err := r.Client.List(ctx, resource, selection, func(o controllers.Object) error {
			if _, is := wanted[k.IDOf(o)]; is {
				wanted[k.IDOf(o)] = o
			}
			return nil
		})
		return err
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
		if err := r.note(t, o, err); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere returns the namespaces with an object of a kind and name. It is
// used for hints only, so errors are ignored.
func (d Doctor) elsewhere(ctx context.Context, t controllers.ID) []string {
	k, known := t.Flux()
	if !known {
		return nil
	}
	var namespaces []string
	_ = d.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		namespaces = nil
		selection := kube.Selection{Name: t.Name, Without: []string{"metadata.managedFields", "spec", "status"}}
		_, err := d.Client.List(ctx, r, selection, func(o controllers.Object) error {
			namespaces = append(namespaces, controllers.Namespace(o))
			return nil
		})
		return err
	})
	return namespaces
}
