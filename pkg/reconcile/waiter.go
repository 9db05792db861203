package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// atOnce is the maximum number of parallel requests for single objects.
const atOnce = 16

// Result is the outcome of the wait for an object.
type Result struct {
	Subject Subject
	// Goal is the awaited state. Children have a goal of their own.
	Goal Goal
	// Last is the last known state of the object, or nil.
	Last controllers.Object
	// Err is nil if the goal was reached. Otherwise it is a *FinalError,
	// ErrDeleted, an error of the API server or of the context.
	Err error
}

// ErrDeleted is returned for an object that was deleted during the wait.
var ErrDeleted = errors.New("deleted while waiting for it")

// Progress is an intermediate state of an object.
type Progress struct {
	Subject Subject
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
	// Progress is called with intermediate states, and Ended with each result.
	// Both are called concurrently.
	Progress func(Progress)
	Ended    func(Result)

	mu      sync.Mutex
	seen    map[string]bool
	results []Result
	running sync.WaitGroup
}

// Run waits until each object has reached the goal or cannot reach it, or until
// ctx ends.
func (w *Waiter) Run(ctx context.Context, subjects []Subject) []Result {
	w.seen = map[string]bool{}
	subs := make([]*Subscription, len(subjects))
	for i, s := range subjects {
		w.seen[s.String()] = true
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
func (w *Waiter) one(ctx context.Context, g Goal, s Subject, sub *Subscription, place int) {
	last, err := w.await(ctx, g, s, sub)
	result := Result{Subject: s, Goal: g, Last: last, Err: err}
	w.mu.Lock()
	w.results[place] = result
	w.mu.Unlock()
	if err == nil && w.Children {
		w.children(ctx, s, last)
	}
	w.Ended(result)
}

// children waits for the Flux objects that a ready object has applied. They
// have revisions of their own, so they only have to be ready.
func (w *Waiter) children(ctx context.Context, s Subject, o controllers.Object) {
	for _, m := range s.Kind.Managed(o) {
		group, _, _ := strings.Cut(m.APIVersion, "/")
		k, ok := controllers.KindOf(group, m.Kind)
		if !ok || !k.Applies() {
			continue
		}
		child := Subject{Kind: k, Namespace: m.Namespace, Name: m.Name}
		w.mu.Lock()
		if w.seen[child.String()] {
			w.mu.Unlock()
			continue
		}
		w.seen[child.String()] = true
		place := len(w.results)
		w.results = append(w.results, Result{})
		w.mu.Unlock()
		w.running.Go(func() { w.one(ctx, Goal{State: Ready}, child, nil, place) })
	}
}

// await reads and watches the object, and returns its last state.
func (w *Waiter) await(ctx context.Context, g Goal, s Subject, sub *Subscription) (controllers.Object, error) {
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
	if done, err := w.judge(ctx, g, s, last); done || err != nil {
		return last, err
	}
	version := controllers.Path{"metadata.resourceVersion"}.String(last)
	err := w.Watches.Follow(ctx, s, version, sub, func(e kube.Event) (bool, error) {
		last = e.Object
		switch {
		case e.Deleted && g.State == Deleted:
			last = nil
			return true, nil
		case e.Deleted:
			return false, ErrDeleted
		}
		return w.judge(ctx, g, s, last)
	})
	return last, err
}

// judge reports whether the goal is reached, and returns an error if it cannot
// be.
func (w *Waiter) judge(ctx context.Context, g Goal, s Subject, o controllers.Object) (bool, error) {
	if g.Reached(s.Kind, o) {
		return true, nil
	}
	if failed := g.failed(s.Kind, o); failed != nil {
		return false, failed
	}
	p := Progress{Subject: s, Object: o}
	if final := g.final(s.Kind, o); final != nil {
		if final.Suspended {
			return false, final
		}
		if p.Attempt = w.attempt(ctx, s, o); p.Attempt == "" {
			return false, final
		}
	}
	if g.Attempt {
		if failed, err := w.Watches.failedSource(ctx, s, o); err == nil && failed != nil {
			return false, failed
		}
	}
	if g.State == Ready {
		// If the source cannot be read, the wait continues.
		if final, err := w.stalledSource(ctx, s, o); err == nil && final != nil {
			return false, final
		}
	}
	w.Progress(p)
	return false, nil
}

// attempt returns the reason for another attempt at a failed object, "" if
// there is none.
func (w *Waiter) attempt(ctx context.Context, s Subject, o controllers.Object) string {
	u := upstream{reads: w.Watches.reads, seen: map[string]bool{}}
	found, err := u.pending(ctx, s, o, 0)
	if err != nil {
		return fmt.Sprintf("its dependencies could not be read: %v", err)
	}
	return found
}
