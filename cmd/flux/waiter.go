package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// waiter waits for objects, each by itself, and reports each that falls short.
type waiter struct {
	app     *app
	client  *kube.Client
	options *waitOptions
	// user ends with the command and not with --timeout.
	user    context.Context
	watches *watches
	slots   chan struct{}

	mu      sync.Mutex
	seen    map[string]bool
	ends    []ending
	running sync.WaitGroup
}

// ending is what has become of an object that was waited for.
type ending struct {
	target target
	last   controllers.Object
	err    error
}

func (w *waiter) run(ctx context.Context, c chosen) error {
	g := goal{w.options.state, w.options.revision}
	w.say(c.targets, g)
	c.share(w.watches)
	subs := make([]*subscription, len(c.targets))
	for i, t := range c.targets {
		w.seen[t.key()] = true
		subs[i] = w.watches.subscribe(t)
	}
	defer w.watches.wait()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w.watches.start(watching)
	w.ends = make([]ending, len(c.targets))
	for i, t := range c.targets {
		w.running.Go(func() { w.one(ctx, g, t, subs[i], i) })
	}
	w.running.Wait()
	var failed error
	var failures []*unreadyError
	for _, end := range w.ends {
		var failure *unreadyError
		if errors.As(end.err, &failure) {
			failures = append(failures, failure)
		}
		if end.err != nil {
			failed = errReported
		}
	}
	w.app.blame(w.user, w.app.doctor(w.client), failures)
	return failed
}

// outcomes are those of all objects that were waited for.
func (w *waiter) outcomes() []objectOutcome {
	var list []objectOutcome
	for _, end := range w.ends {
		list = append(list, outcomeOf(end.target, end.last, end.err))
	}
	return list
}

func (w *waiter) say(targets []target, g goal) {
	switch len(targets) {
	case 0:
	case 1:
		w.app.ui.Waiting("waiting until %s is %s", targets[0], g)
	default:
		w.app.ui.Waiting("waiting until %s are %s", countTargets(targets), g)
	}
}

// one waits for an object, says what has become of it, and goes on with what
// it applies.
func (w *waiter) one(ctx context.Context, g goal, t target, sub *subscription, place int) {
	last, err := w.await(ctx, g, t, sub)
	err = w.inWords(g, t, last, err)
	w.mu.Lock()
	w.ends[place] = ending{t, last, err}
	w.mu.Unlock()
	switch {
	case err != nil && w.user.Err() == nil:
		w.app.report(err)
	case err == nil:
		w.app.ui.Success("%s is %s%s", t, goal{state: g.state}, atRevision(g, t.kind, last))
	}
	if err == nil && w.options.children {
		w.children(ctx, t, last)
	}
}

func atRevision(g goal, k controllers.Kind, o controllers.Object) string {
	path, ok := revisionPath(k)
	if revision := path.String(o); ok && revision != "" && g.state == stateReady {
		return " at " + revision
	}
	return ""
}

// children waits for the Kustomizations and HelmReleases that a ready object
// has applied. Their revisions are their own, so only being ready counts.
func (w *waiter) children(ctx context.Context, t target, o controllers.Object) {
	for _, m := range t.kind.Managed(o) {
		group, _, _ := strings.Cut(m.APIVersion, "/")
		k, ok := controllers.KindOf(group, m.Kind)
		if !ok || !nests(k) {
			continue
		}
		child := target{kind: k, namespace: m.Namespace, name: m.Name}
		w.mu.Lock()
		if w.seen[child.key()] {
			w.mu.Unlock()
			continue
		}
		w.seen[child.key()] = true
		place := len(w.ends)
		w.ends = append(w.ends, ending{})
		w.mu.Unlock()
		w.running.Go(func() { w.one(ctx, goal{state: stateReady}, child, nil, place) })
	}
}

// await looks at the object and then watches it from there on; it returns the
// object's last state, nil where there is none.
func (w *waiter) await(ctx context.Context, g goal, t target, sub *subscription) (controllers.Object, error) {
	if err := w.look(ctx, &t); err != nil {
		var none *notFoundError
		if g.state == stateDeleted && errors.As(err, &none) {
			return nil, nil
		}
		return nil, err
	}
	last := t.object
	if done, err := g.reached(t, last); done || err != nil {
		return last, err
	}
	version := controllers.Path{"metadata.resourceVersion"}.String(last)
	err := w.watches.follow(ctx, t, version, sub, func(e kube.Event) (bool, error) {
		last = e.Object
		if e.Deleted {
			if g.state != stateDeleted {
				return false, fmt.Errorf("%s was deleted while it was waited for", t)
			}
			last = nil
			return true, nil
		}
		return g.reached(t, last)
	})
	return last, err
}

func (w *waiter) look(ctx context.Context, t *target) error {
	w.slots <- struct{}{}
	defer func() { <-w.slots }()
	return t.read(ctx, w.client)
}

// inWords makes the error that the user sees.
func (w *waiter) inWords(g goal, t target, o controllers.Object, err error) error {
	var final *finalError
	late := errors.Is(err, context.DeadlineExceeded) && o != nil
	switch {
	case errors.As(err, &final) && t.kind.Suspension.Is(o):
		return hinted(final.hint, "%s %s", t, final.reason)
	case errors.As(err, &final):
		return unready(t, o, "%s %s", t, final.reason)
	case late && !g.explicable(t, o):
		return fmt.Errorf("%s is not %s after %s: %s", t, g, w.app.global.timeout, g.missed(t, o))
	case late:
		failure := unready(t, o, "%s is not %s after %s: %s", t, g, w.app.global.timeout, g.missed(t, o))
		failure.late = true
		return failure
	default:
		return err
	}
}
