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

// atOnce bounds the requests for single objects that are under way together.
const atOnce = 16

// Result is what has become of an object.
type Result struct {
	Subject Subject
	// Goal is what was waited for: children have one of their own.
	Goal Goal
	// Last is the last known state of the object, nil where there is none.
	Last controllers.Object
	// Err is nil where the goal was reached: a *FinalError, ErrDeleted, what
	// the API server said, or that of the context.
	Err error
}

// ErrDeleted is returned for an object that was deleted while it was waited for.
var ErrDeleted = errors.New("deleted while it was waited for")

// Progress is a state of an object that is not its goal.
type Progress struct {
	Subject Subject
	Object  controllers.Object
	// Attempt says why a failure is not the end: what brings the next attempt.
	Attempt string
}

// Waiter waits for objects, each by itself.
type Waiter struct {
	// Watches has the connection to the cluster, and the watches that objects share.
	Watches *Watches
	Goal    Goal
	// Children also waits for the objects of Flux that a ready object has
	// applied, and for theirs, until they are ready.
	Children bool
	// Progress is called with the states of objects, and Ended with the result
	// of each. Both are called by several goroutines at once.
	Progress func(Progress)
	Ended    func(Result)

	mu      sync.Mutex
	seen    map[string]bool
	results []Result
	running sync.WaitGroup
}

// Run waits until all objects have reached the goal or will not, or ctx ends.
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

// one waits for an object and goes on with what it has applied.
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

// children waits for the objects of Flux that a ready object has applied. Their
// revisions are their own, so only readiness counts.
func (w *Waiter) children(ctx context.Context, s Subject, o controllers.Object) {
	for _, m := range s.Kind.Managed(o) {
		group, _, _ := strings.Cut(m.APIVersion, "/")
		k, ok := controllers.KindOf(group, m.Kind)
		if !ok || !k.Nests() {
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

// await reads the object and watches it from there on; it returns the object's
// last state.
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

// judge reports whether a state is the goal, and returns an error where waiting
// for it is of no use.
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
		// What cannot be read leaves the question open, and the object is waited for.
		if final, err := w.stalledSource(ctx, s, o); err == nil && final != nil {
			return false, final
		}
	}
	w.Progress(p)
	return false, nil
}

// attempt is what brings another attempt at an object that has failed for now,
// "" where nothing does.
func (w *Waiter) attempt(ctx context.Context, s Subject, o controllers.Object) string {
	u := upstream{reads: w.Watches.reads, seen: map[string]bool{}}
	found, err := u.pending(ctx, s, o, 0)
	if err != nil {
		return fmt.Sprintf("what it depends on could not be read: %v", err)
	}
	return found
}
