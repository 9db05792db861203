package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// atOnce is the maximum number of parallel requests for single objects.
const atOnce = 16

// Result is the outcome of the wait for an object.
type Result struct {
	Subject objref.Target
	// Goal is the awaited state. Child objects have their own goal.
	Goal Goal
	// Last is the last known state of the object, nil if it was not read or is
	// deleted. After a wait for Deleted it is the new object of that name, if
	// there is one.
	Last controllers.Object
	// Err is nil if the goal was reached. Otherwise it is a *FinalError,
	// ErrDeleted, an error of the API server or of the context.
	Err error
}

// Done returns the message of a reconciliation that has succeeded.
func (r Result) Done() string {
	k := r.Subject.Kind
	if k.Result == nil {
		return k.Ready(r.Last).Message
	}
	return fmt.Sprintf(k.Done, k.Result.String(r.Last))
}

// ErrDeleted is returned for an object that was deleted during the wait.
var ErrDeleted = errors.New("deleted while waiting for it")

// Progress describes an intermediate state of an object.
type Progress struct {
	Subject objref.Target
	Object  controllers.Object
	// Attempt is the reason for another attempt after a failure.
	Attempt string
}

// Waiter waits for objects independently of each other.
type Waiter struct {
	// Watches is the connection to the cluster with the shared watches.
	Watches *Watches
	Goal    Goal
	// Children also waits for the Flux objects that a ready object has applied,
	// recursively.
	Children bool
	// Progress is called with intermediate states, and Ended with each result of
	// Run. Both are called concurrently.
	Progress func(Progress)
	Ended    func(Result)

	mu      sync.Mutex
	seen    map[string]bool
	results []Result
	running sync.WaitGroup
}

// Run waits until each object has reached the goal or cannot reach it, or until
// ctx ends.
func (w *Waiter) Run(ctx context.Context, subjects []objref.Target) []Result {
	w.seen = map[string]bool{}
	subs := make([]*Subscription, len(subjects))
	for i, s := range subjects {
		w.seen[s.Named().String()] = true
		subs[i] = w.Watches.Subscribe(s)
	}
	defer w.Watches.Wait()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w.Watches.Start(watching)
	w.results = make([]Result, len(subjects))
	for i, s := range subjects {
		w.running.Go(func() { w.one(ctx, w.Goal, s, subs[i], i) })
	}
	w.running.Wait()
	return w.results
}

// one waits for an object and starts the waits for its children.
func (w *Waiter) one(ctx context.Context, g Goal, s objref.Target, sub *Subscription, place int) {
	result := w.Await(ctx, g, s, sub)
	w.mu.Lock()
	w.results[place] = result
	w.mu.Unlock()
	if result.Err == nil && w.Children {
		w.children(ctx, result.Last)
	}
	w.Ended(result)
}

// children waits for the Flux objects that a ready object has applied. They have their own
// revisions, so they are awaited at any revision.
func (w *Waiter) children(ctx context.Context, o controllers.Object) {
	for _, m := range controllers.Managed(o) {
		k, ok := m.Flux()
		if !ok || !k.Applies() {
			continue
		}
		child := objref.Target{Kind: k, Namespace: m.Namespace, Name: m.Name}
		w.mu.Lock()
		if w.seen[child.Named().String()] {
			w.mu.Unlock()
			continue
		}
		w.seen[child.Named().String()] = true
		place := len(w.results)
		w.results = append(w.results, Result{})
		w.mu.Unlock()
		w.running.Go(func() { w.one(ctx, Goal{State: Ready}, child, nil, place) })
	}
}

// Await waits for one object. The object of the subject is its state before the wait; without one
// it is read first. sub is a subscription of Watches, nil for a separate watch.
func (w *Waiter) Await(ctx context.Context, g Goal, s objref.Target, sub *Subscription) Result {
	last, err := w.await(ctx, g, s, sub)
	return Result{Subject: s, Goal: g, Last: last, Err: err}
}

func (w *Waiter) await(ctx context.Context, g Goal, s objref.Target, sub *Subscription) (controllers.Object, error) {
	last := s.Object
	if last == nil {
		var err error
		last, err = w.Watches.reads.get(ctx, s)
		if g.State == Deleted && apierrors.IsNotFound(err) && !kube.NotServed(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if g.State == Deleted && g.UID == "" {
		g.UID = uid(last)
	}
	if done, err := w.evaluate(ctx, g, s, last); done || err != nil {
		return last, err
	}
	version := controllers.Path{"metadata.resourceVersion"}.String(last)
	err := w.Watches.Follow(ctx, s, version, sub, func(e kube.Event) (bool, error) {
		if outdated(e, last) {
			return false, nil
		}
		last = e.Object
		switch {
		case e.Deleted && g.State == Deleted:
			last = nil
			return true, nil
		case e.Deleted:
			return false, ErrDeleted
		}
		return w.evaluate(ctx, g, s, last)
	})
	return last, err
}

// outdated reports whether an event precedes the last known state: a shared
// watch starts before the object is changed. A deletion that was noticed by a
// list has the state that was listed before.
func outdated(e kube.Event, last controllers.Object) bool {
	return kube.Older(e.Object, last) && !(e.Deleted && uid(e.Object) == uid(last))
}

// evaluate reports whether the goal is reached, and returns an error if it cannot be reached.
func (w *Waiter) evaluate(ctx context.Context, g Goal, s objref.Target, o controllers.Object) (bool, error) {
	g = g.withReplaced(s.Object, o)
	if g.Reached(s.Kind, o) {
		return true, nil
	}
	if failed := g.Failed(s.Kind, o); failed != nil {
		return false, failed
	}
	p := Progress{Subject: s, Object: o}
	final := g.final(s.Kind, o)
	switch {
	case final != nil && final.Suspended:
		return false, final
	case g.precedesRequest(o):
		// The state at the start of the wait is from before the request.
		if !kube.Same(o, s.Object) {
			w.Progress(p)
		}
		return false, nil
	case final != nil:
		if p.Attempt = w.attempt(ctx, s, o); p.Attempt == "" {
			return false, final
		}
	}
	switch {
	case g.Attempt:
		// If the source cannot be read, the wait continues.
		if failed, err := w.failedSource(ctx, s, o); err == nil && failed != nil {
			return false, failed
		}
	case g.State == Ready:
		if final, err := w.stalledSource(ctx, s, o); err == nil && final != nil {
			return false, final
		}
	}
	w.Progress(p)
	return false, nil
}

// attempt returns the reason for another attempt at a failed object, "" if
// there is none.
func (w *Waiter) attempt(ctx context.Context, s objref.Target, o controllers.Object) string {
	u := upstream{reads: w.Watches.reads, seen: map[string]bool{}}
	found, err := u.pending(ctx, s, o, 0)
	if err != nil {
		return fmt.Sprintf("its dependencies could not be read: %v", err)
	}
	return found
}
