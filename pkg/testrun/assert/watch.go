package assert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxEvents is the maximum number of events that are kept.
const maxEvents = 10_000

// history holds the observations of an object. Its lists contain the moments of the changes.
type history struct {
	ref Ref
	// object is the last state, nil if the object does not exist.
	object controllers.Object
	// last is the last state of an object that may have been deleted.
	last controllers.Object
	// listed is set as soon as the state is known.
	listed bool
	// unserved is set as long as the API server does not serve the kind.
	unserved bool
	// err is the reason why the object cannot be watched.
	err error
	// since is the time of the last change.
	since time.Time
	// deleted, readied and attempts list the deletions, the changes to Ready, and the finished
	// reconciliations.
	deleted, attempts []int
	readied           []turn
}

// turn is a change to Ready.
type turn struct {
	moment int
	// object is the first state that was received after the change. seen is set if the state before
	// the change was received and not ready; otherwise, earlier states may have been missed.
	object controllers.Object
	seen   bool
}

// before reports whether a change to Ready was certainly before another one. Watches deliver objects
// in any order, but the sandbox has one store, whose resource versions follow the order of the
// changes.
func (a turn) before(b turn) bool {
	return b.seen && (kube.Older(a.object, b.object) || !a.seen && transition(a.object) < transition(b.object))
}

// transition returns the time of the last change of the Ready condition, in whole seconds.
func transition(o controllers.Object) string {
	c, _ := controllers.FindCondition(o, "Ready")
	return c.LastTransitionTime
}

// seen is an event with the moment at which it was received.
type seen struct {
	event.Event
	moment int
}

// hub watches the objects that assertions reference, and all events.
type hub struct {
	client *kube.Client
	now    func() time.Time
	// changed receives a value after a change.
	changed chan struct{}
	wait    sync.WaitGroup

	mu      sync.Mutex
	objects map[controllers.VersionedID]*history
	events  []seen
	// unheard is the reason why events cannot be watched.
	unheard error
	// moment counts the changes.
	moment int
}

func newHub(client *kube.Client, now func() time.Time) *hub {
	return &hub{client: client, now: now, changed: make(chan struct{}, 1), objects: map[controllers.VersionedID]*history{}}
}

// mark returns the current moment.
func (h *hub) mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moment
}

// next returns a new moment.
func (h *hub) next() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moment++
	return h.moment
}

// wake triggers another evaluation of the assertions.
func (h *hub) wake() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// key identifies the watched object with its version, because the API server may not serve every version of a kind.
func (r Ref) key() controllers.VersionedID {
	return controllers.VersionedID{ID: r.target(), Version: r.GroupVersionKind().Version}
}

// of returns a copy of the history of an object.
func (h *hub) of(r Ref) history {
	h.mu.Lock()
	defer h.mu.Unlock()
	if found := h.objects[r.key()]; found != nil {
		return *found
	}
	return history{}
}

// object watches an object until ctx ends.
func (h *hub) object(ctx context.Context, r Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects[r.key()] != nil {
		return
	}
	h.objects[r.key()] = &history{ref: r, since: h.now()}
	h.wait.Go(func() {
		if err := h.follow(ctx, r); err != nil && ctx.Err() == nil {
			h.update(r, func(o *history) { o.err, o.listed = err, true })
		}
	})
}

// unservedPause is the time before the next discovery of a kind whose CustomResourceDefinition has
// just been established.
const unservedPause = 200 * time.Millisecond

// follow watches an object, even while the CustomResourceDefinition of its kind does not exist.
func (h *hub) follow(ctx context.Context, r Ref) error {
	gvk := r.GroupVersionKind()
	for {
		err := h.once(ctx, r, gvk)
		var missing *kube.MissingKindError
		if !kube.NotServed(err) && !errors.As(err, &missing) {
			return err
		}
		h.update(r, func(o *history) { o.listed, o.unserved, o.object = true, true, nil })
		err = h.client.Follow(ctx, kube.CRDs(), kube.Selection{Without: []string{"spec.versions.schema"}}, "", func(e kube.Event) (bool, error) {
			established, _ := controllers.FindCondition(e.Object, "Established")
			return established.Status == "True" && (controllers.Path{"spec.group"}).String(e.Object) == gvk.Group &&
				(controllers.Path{"spec.names.kind"}).String(e.Object) == gvk.Kind, nil
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(unservedPause):
		}
	}
}

// once watches an object as long as the API server serves its kind.
func (h *hub) once(ctx context.Context, r Ref, gvk schema.GroupVersionKind) error {
	watch := func(resource kube.Resource) error {
		if resource.ClusterScoped != (r.Namespace == "") {
			return scopeError(resource, r)
		}
		return h.client.Watch(ctx, context.WithCancel, resource, kube.Selection{Namespace: r.Namespace, Name: r.Name}, func(list []controllers.Object) error {
			var o controllers.Object
			if len(list) > 0 {
				o = list[0]
			}
			h.set(ctx, r, o, nil)
			return nil
		}, func(e kube.Event) error {
			if e.Deleted {
				h.set(ctx, r, nil, e.Object)
			} else {
				h.set(ctx, r, e.Object, nil)
			}
			return nil
		})
	}
	if k, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok {
		return h.client.WithServedVersion(ctx, k, watch)
	}
	resource, err := resolve(ctx, h.client, gvk)
	if err != nil {
		return err
	}
	return watch(resource)
}

func scopeError(resource kube.Resource, r Ref) error {
	if resource.ClusterScoped {
		return fmt.Errorf("%s is cluster-scoped: remove the namespace", r.Kind)
	}
	return fmt.Errorf("the namespace is required for %s", r.Kind)
}

// resolve returns the resource of a kind that Flux does not define.
func resolve(ctx context.Context, client *kube.Client, gvk schema.GroupVersionKind) (kube.Resource, error) {
	if k, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok {
		return kube.Of(k), nil
	}
	resource, served, err := kube.NewKinds(client).Find(ctx, gvk)
	if err == nil && !served {
		err = &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return resource, err
}

func (h *hub) update(r Ref, change func(*history)) {
	h.mu.Lock()
	change(h.objects[r.key()])
	h.mu.Unlock()
	h.wake()
}

// refreshTime bounds the wait for changes that the watches have not received.
const refreshTime = 10 * time.Second

// refresh waits until the watches have received all changes that the controllers have made so far.
// Reading only the current state would miss earlier states.
func (h *hub) refresh(ctx context.Context) {
	missing := h.read(ctx)
	timer := time.NewTimer(refreshTime)
	defer timer.Stop()
	for {
		maps.DeleteFunc(missing, func(r Ref, o controllers.Object) bool {
			was := h.of(r)
			if o == nil {
				return was.object == nil
			}
			return was.last != nil && !kube.Older(was.last, o)
		})
		if len(missing) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			for r, o := range missing {
				h.set(ctx, r, o, nil)
			}
			return
		case <-h.changed:
		}
	}
}

// read returns the current states of all objects, nil for missing objects.
func (h *hub) read(ctx context.Context) map[Ref]controllers.Object {
	h.mu.Lock()
	refs := make([]Ref, 0, len(h.objects))
	for _, o := range h.objects {
		refs = append(refs, o.ref)
	}
	h.mu.Unlock()
	states := map[Ref]controllers.Object{}
	for _, r := range refs {
		resource, err := resolve(ctx, h.client, r.GroupVersionKind())
		if err != nil {
			continue // the watch records the error
		}
		switch o, err := h.client.Get(ctx, resource, r.Namespace, r.Name); {
		case err == nil:
			states[r] = o
		case apierrors.IsNotFound(err) && !kube.NotServed(err):
			states[r] = nil
		}
	}
	return states
}

// set records a state of an object. It also watches the owners, because their inventories show
// whether the object was pruned.
func (h *hub) set(ctx context.Context, r Ref, o, deleted controllers.Object) {
	h.update(r, func(was *history) {
		if o != nil && was.object != nil && !kube.Older(was.object, o) {
			return // a read has already returned this state
		}
		h.moment++
		if deleted != nil || o == nil && was.object != nil {
			was.deleted = append(was.deleted, h.moment)
		}
		if k, ok := r.flux(); ok && o != nil {
			// A state in between may be missing: a read was faster than the watch, or the watch was interrupted.
			unready := was.object != nil && !k.IsReady(was.object)
			if k.IsReady(o) && (was.object == nil || unready || transition(was.object) != transition(o)) {
				was.readied = append(was.readied, turn{h.moment, o, unready})
			}
			if attempt(k, o) != "" && (was.object == nil || attempt(k, was.object) != attempt(k, o)) {
				was.attempts = append(was.attempts, h.moment)
			}
		}
		if o != nil {
			was.last = o
		}
		was.object, was.listed, was.unserved, was.since = o, true, false, h.now()
	})
	for _, owner := range controllers.Owners(o) {
		h.object(ctx, Ref{Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name})
	}
}

// attempt identifies a finished reconciliation, "" while there is none.
func attempt(k controllers.Kind, o controllers.Object) string {
	if !k.Finished(o) {
		return ""
	}
	ready := k.Ready(o)
	field := func(path string) string { return controllers.Path{path}.String(o) }
	return fmt.Sprint(ready, field("status.lastHandledReconcileAt"), field("status.lastAttemptedRevision"), field("status.artifact.revision"), field("metadata.generation"))
}

// watchEvents watches all events until ctx ends. Events that already exist count as seen.
func (h *hub) watchEvents(ctx context.Context) {
	h.wait.Go(func() {
		err := h.client.Watch(ctx, context.WithCancel, event.Resource(), kube.Selection{}, func(list []controllers.Object) error {
			for _, o := range list {
				h.event(o)
			}
			return nil
		}, func(e kube.Event) error {
			if !e.Deleted {
				h.event(e.Object)
			}
			return nil
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		h.unheard = err
	})
}

func (h *hub) event(o controllers.Object) {
	h.mu.Lock()
	h.moment++
	if len(h.events) == maxEvents {
		h.events = append([]seen(nil), h.events[maxEvents/2:]...)
	}
	h.events = append(h.events, seen{event.Of(o), h.moment})
	h.mu.Unlock()
	h.wake()
}
