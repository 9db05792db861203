package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// reconciler requests the reconciliation of objects, sources and dependencies
// first, and watches for the results.
type reconciler struct {
	app     *app
	client  *kube.Client
	options reconcileOptions
	// user ends with the command and not with --timeout: what went wrong can
	// still be looked at when the time is over.
	user  context.Context
	asked time.Time
	// resuming makes it a resume: the request also ends the suspension.
	resuming bool
	// many objects are told apart by name in every line.
	many bool

	watches *reconcile.Watches
	slots   chan struct{}
	states  *states

	mu    sync.Mutex
	nodes map[string]*node
	order []*node
}

// node is an object to be reconciled once those before it are.
type node struct {
	target
	before []edge
	// ask is false for what only leads to its sources, and wanted true for what
	// the user has named.
	ask, wanted bool
	sub         *reconcile.Subscription

	last controllers.Object
	err  error
	done chan struct{}
}

// edge leads to an object that is reconciled first: a source or, where
// dependency is true, one of spec.dependsOn.
type edge struct {
	*node
	dependency bool
}

// failed is why an object is not reconciled after this one.
func (e edge) failed(n *node) error {
	if e.dependency {
		return unready(n.target, n.last, "%s was not reconciled: its dependency %s is not ready", n.target, e.target)
	}
	return unready(n.target, n.last, "%s was not reconciled: its source %s could not be reconciled", n.target, e.target)
}

func (a *app) newReconciler(user context.Context, client *kube.Client, o reconcileOptions) *reconciler {
	return &reconciler{
		app: a, client: client, options: o, user: user, asked: a.now(),
		watches: reconcile.NewWatches(client), slots: make(chan struct{}, atOnce), nodes: map[string]*node{},
	}
}

// run reconciles what is chosen, with its sources, and reports every failure
// when it happens.
func (r *reconciler) run(ctx context.Context, c chosen) error {
	r.many = len(c.targets) > 1
	r.plan(ctx, c.targets)
	c.share(r.watches)
	r.subscribe()
	defer r.watches.Wait()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	r.watches.Start(watching)
	if r.many && !r.resuming {
		r.app.ui.Action("reconciling %s", c.counted())
	}
	r.states = r.app.newStates(len(r.nodes), "reconciled")
	var wg sync.WaitGroup
	for _, n := range r.nodes {
		wg.Go(func() {
			defer close(n.done)
			defer r.states.end(n.subject())
			if n.err == nil {
				n.err = r.reconcile(ctx, n)
			}
			if n.err != nil && r.user.Err() == nil {
				r.app.report(n.err)
			}
		})
	}
	wg.Wait()
	r.states.close()
	r.app.blame(r.user, r.app.doctor(r.client), r.failures())
	for _, n := range r.order {
		if n.err != nil {
			return errReported
		}
	}
	return nil
}

// failures are the objects that are not ready, what was asked for first.
func (r *reconciler) failures() []*unreadyError {
	var list []*unreadyError
	add := func(n *node) {
		var failure *unreadyError
		if errors.As(n.err, &failure) && !slices.Contains(list, failure) {
			list = append(list, failure)
		}
	}
	for _, n := range r.order {
		add(n)
	}
	for _, key := range slices.Sorted(maps.Keys(r.nodes)) {
		add(r.nodes[key])
	}
	return list
}

// subscribe decides how each object is watched. It comes before any request for a
// reconciliation, so that no answer is missed.
func (r *reconciler) subscribe() {
	var subjects []reconcile.Subject
	for _, n := range r.nodes {
		if n.ask {
			subjects = append(subjects, n.subject())
		}
	}
	r.watches.ShareMany(subjects)
	for _, n := range r.nodes {
		if n.ask {
			n.sub = r.watches.Subscribe(n.subject())
		}
	}
}

// outcomes are those of the objects that were asked for, in their order.
func (r *reconciler) outcomes() []objectOutcome {
	var list []objectOutcome
	for _, n := range r.order {
		list = append(list, outcomeOf(n.target, n.last, n.err))
	}
	return list
}

// reconcile brings one object to its end.
func (r *reconciler) reconcile(ctx context.Context, n *node) (err error) {
	for _, e := range n.before {
		select {
		case <-ctx.Done():
			return r.tooLate(n, ctx.Err())
		case <-e.done:
		}
		if e.err != nil {
			return e.failed(n)
		}
	}
	if !n.ask {
		return nil
	}
	change := map[string]any{}
	switch {
	case r.resuming:
		change = resumption(n.kind)
	case r.options.once && n.wanted:
		if err := n.target.read(ctx, r.client); err != nil {
			return err
		}
		if n.kind.Suspension.Is(n.object) {
			change = n.kind.Suspension.Change(false)
			defer func() { err = errors.Join(err, r.suspendAgain(n)) }()
		}
	}
	return r.askAndWait(ctx, n, change)
}

// askAndWait repeats a request whose answer is no result: the controller has not
// seen the source's new revision yet, or has put the object off because of a
// dependency and would retry only after the object's interval.
func (r *reconciler) askAndWait(ctx context.Context, n *node, change map[string]any) error {
	for attempt := range attempts {
		token := r.asked.Add(time.Duration(attempt) * time.Millisecond).Format(time.RFC3339Nano)
		patched, err := r.request(ctx, n, token, maps.Clone(change), attempt)
		if err != nil {
			return err
		}
		n.last = patched
		if n.kind.Suspension.Is(patched) {
			return suspendedError(n.target, patched)
		}
		if !r.waits(n) {
			return nil
		}
		err = r.await(ctx, n, token, attempt)
		switch {
		case errors.Is(err, errStale):
		case errors.Is(err, errBlocked):
			if err := r.awaitDependencies(ctx, n); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

func (r *reconciler) waits(n *node) bool {
	return r.options.wait && n.kind.Done != ""
}

// request sends one patch that asks for a reconciliation, together with change.
func (r *reconciler) request(ctx context.Context, n *node, token string, change map[string]any, attempt int) (patched controllers.Object, err error) {
	annotations := map[string]any{}
	if asks(n.kind) {
		annotations[requestAnnotation] = token
	}
	if r.options.force && n.kind.Kind == "HelmRelease" {
		annotations[forceAnnotation] = token
	}
	if r.options.reset && n.kind.Kind == "HelmRelease" {
		annotations[resetAnnotation] = token
	}
	annotate(change, annotations)
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	if attempt == 0 {
		r.sayAsking(n)
	}
	err = r.client.With(ctx, n.kind, func(served kube.Resource) error {
		patched, err = r.client.Merge(ctx, served, n.namespace, n.name, change)
		return err
	})
	if err == nil && attempt == 0 && !n.kind.Suspension.Is(patched) {
		r.sayAsked(n)
	}
	return patched, missing(err, n.target)
}

func (r *reconciler) sayAsking(n *node) {
	switch {
	case r.resuming:
		r.app.ui.Action("resuming %s %s in %s namespace", n.kind.Noun(), n.name, n.namespace)
	case !r.many:
		r.app.ui.Action("annotating %s %s in %s namespace", n.kind.Kind, n.name, n.namespace)
	}
}

func (r *reconciler) sayAsked(n *node) {
	switch {
	case r.resuming && r.many:
		r.app.ui.Success("%s %s/%s resumed", n.kind.Noun(), n.namespace, n.name)
	case r.resuming:
		r.app.ui.Success("%s resumed", n.kind.Noun())
	case r.many && !r.options.wait:
		r.app.ui.Success("%s annotated", n.target)
	case !r.many:
		r.app.ui.Success("%s annotated", n.kind.Kind)
	}
}

// suspendTime bounds how long it takes to suspend an object again when the
// command is over, perhaps because of Ctrl-C.
const suspendTime = 5 * time.Second

// suspendAgain also works after --timeout and Ctrl-C: an object that was
// suspended must not stay resumed because the wait has ended.
func (r *reconciler) suspendAgain(n *node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.user), suspendTime)
	defer cancel()
	err := r.client.With(ctx, n.kind, func(res kube.Resource) error {
		_, err := r.client.Merge(ctx, res, n.namespace, n.name, n.kind.Suspension.Change(true))
		return err
	})
	if err != nil {
		return hinted(fmt.Sprintf("flux suspend %s %s -n %s", n.kind.Noun(), n.name, n.namespace), "suspending %s again: %w", n.target, err)
	}
	r.app.ui.Success("%s is suspended again", n.target)
	return nil
}
