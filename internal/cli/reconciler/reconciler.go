// Package reconciler requests reconciliations in the order of sources and
// dependencies, and reports their outcomes.
package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Reconciler requests the reconciliation of objects, sources and dependencies
// first, and watches for the results.
type Reconciler struct {
	app     *app.App
	client  *kube.Client
	options Options
	// user ends with the command and not with --timeout: what went wrong can
	// still be looked at when the time is over.
	user  context.Context
	asked time.Time
	// Resuming makes it a resume: the request also ends the suspension.
	Resuming bool
	// many objects are told apart by name in every line.
	many bool

	watches *reconcile.Watches
	waiter  *reconcile.Waiter
	slots   chan struct{}
	states  *report.Progress

	mu    sync.Mutex
	nodes map[string]*node
	Order []*node
}

// node is an object to be reconciled once those before it are.
type node struct {
	objref.Target
	before []edge
	// ask is false for what only leads to its sources, and wanted true for what
	// the user has named.
	ask, wanted bool
	sub         *reconcile.Subscription

	Last controllers.Object
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
		return report.Unready(n.Target, n.Last, "%s was not reconciled: its dependency %s is not ready", n.Target, e.Target)
	}
	return report.Unready(n.Target, n.Last, "%s was not reconciled: its source %s could not be reconciled", n.Target, e.Target)
}

// New returns a Reconciler whose requests end with the command.
func New(user context.Context, a *app.App, client *kube.Client, o Options) *Reconciler {
	r := &Reconciler{
		app: a, client: client, options: o, user: user, asked: a.Now(),
		watches: reconcile.NewWatches(client), slots: make(chan struct{}, app.Concurrency), nodes: map[string]*node{},
	}
	r.waiter = &reconcile.Waiter{Watches: r.watches, Progress: r.update}
	return r
}

// Run reconciles what is chosen, with its sources, and reports every failure
// when it happens.
func (r *Reconciler) Run(ctx context.Context, c kinds.Chosen) error {
	r.many = len(c.Targets) > 1
	r.plan(ctx, c.Targets)
	c.Share(r.watches)
	r.subscribe()
	defer r.watches.Wait()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	r.watches.Start(watching)
	if r.many && !r.Resuming {
		r.app.UI.Action("reconciling %s", c.Count())
	}
	r.states = report.NewProgress(r.app, len(r.nodes), "reconciled")
	var wg sync.WaitGroup
	for _, n := range r.nodes {
		wg.Go(func() {
			defer close(n.done)
			defer r.states.Done(n.Subject())
			if n.err == nil {
				n.err = r.reconcile(ctx, n)
			}
			if n.err != nil && r.user.Err() == nil {
				r.app.Report(n.err)
			}
		})
	}
	wg.Wait()
	r.states.Close()
	report.PrintRootCauses(r.user, r.app, report.Doctor(r.app, r.client), r.failures())
	for _, n := range r.Order {
		if n.err != nil {
			return clierr.ErrReported
		}
	}
	return nil
}

// failures are the objects that are not ready, what was asked for first.
func (r *Reconciler) failures() []*report.UnreadyError {
	var list []*report.UnreadyError
	add := func(n *node) {
		var failure *report.UnreadyError
		if errors.As(n.err, &failure) && !slices.Contains(list, failure) {
			list = append(list, failure)
		}
	}
	for _, n := range r.Order {
		add(n)
	}
	for _, key := range slices.Sorted(maps.Keys(r.nodes)) {
		add(r.nodes[key])
	}
	return list
}

// subscribe decides how each object is watched. It comes before any request for a
// reconciliation, so that no answer is missed.
func (r *Reconciler) subscribe() {
	var subjects []reconcile.Subject
	for _, n := range r.nodes {
		if n.ask {
			subjects = append(subjects, n.Subject())
		}
	}
	r.watches.ShareMany(subjects)
	for _, n := range r.nodes {
		if n.ask {
			n.sub = r.watches.Subscribe(n.Subject())
		}
	}
}

// Outcomes are those of the objects that were asked for, in their order.
func (r *Reconciler) Outcomes() []report.Outcome {
	var list []report.Outcome
	for _, n := range r.Order {
		list = append(list, report.OutcomeOf(n.Target, n.Last, n.err))
	}
	return list
}

// reconcile brings one object to its end.
func (r *Reconciler) reconcile(ctx context.Context, n *node) (err error) {
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
	case r.Resuming:
		change = resumption(n.Kind)
	case r.options.Once && n.wanted:
		if err := n.Target.Read(ctx, r.client); err != nil {
			return err
		}
		if n.Kind.Suspension.Is(n.Object) {
			change = n.Kind.Suspension.Change(false)
			defer func() { err = errors.Join(err, r.suspendAgain(n)) }()
		}
	}
	return r.askAndWait(ctx, n, change)
}

// askAndWait repeats a request whose answer is no result: the controller has not
// seen the source's new revision yet, or has put the object off because of a
// dependency and would retry only after the object's interval.
func (r *Reconciler) askAndWait(ctx context.Context, n *node, change map[string]any) error {
	for attempt := range attempts {
		token := r.asked.Add(time.Duration(attempt) * time.Millisecond).Format(time.RFC3339Nano)
		patched, err := r.request(ctx, n, token, maps.Clone(change), attempt)
		if err != nil {
			return err
		}
		n.Last = patched
		if n.Kind.Suspension.Is(patched) {
			return SuspendedError(n.Target, patched)
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

func (r *Reconciler) waits(n *node) bool {
	return r.options.Wait && n.Kind.Done != ""
}

// request sends one patch that asks for a reconciliation, together with change.
func (r *Reconciler) request(ctx context.Context, n *node, token string, change map[string]any, attempt int) (patched controllers.Object, err error) {
	annotations := map[string]any{}
	if asks(n.Kind) {
		annotations[RequestAnnotation] = token
	}
	if r.options.Force && n.Kind.Kind == "HelmRelease" {
		annotations[forceAnnotation] = token
	}
	if r.options.Reset && n.Kind.Kind == "HelmRelease" {
		annotations[resetAnnotation] = token
	}
	Annotate(change, annotations)
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	if attempt == 0 {
		r.sayAsking(n)
	}
	err = r.client.WithServedVersion(ctx, n.Kind, func(served kube.Resource) error {
		patched, err = r.client.MergePatch(ctx, served, n.Namespace, n.Name, change)
		return err
	})
	if err == nil && attempt == 0 && !n.Kind.Suspension.Is(patched) {
		r.sayAsked(n)
	}
	return patched, objref.NotFound(err, n.Target)
}

func (r *Reconciler) sayAsking(n *node) {
	switch {
	case r.Resuming:
		r.app.UI.Action("resuming %s %s in %s namespace", n.Kind.Noun(), n.Name, n.Namespace)
	case !r.many:
		r.app.UI.Action("annotating %s %s in %s namespace", n.Kind.Kind, n.Name, n.Namespace)
	}
}

func (r *Reconciler) sayAsked(n *node) {
	switch {
	case r.Resuming && r.many:
		r.app.UI.Success("%s %s/%s resumed", n.Kind.Noun(), n.Namespace, n.Name)
	case r.Resuming:
		r.app.UI.Success("%s resumed", n.Kind.Noun())
	case r.many && !r.options.Wait:
		r.app.UI.Success("%s annotated", n.Target)
	case !r.many:
		r.app.UI.Success("%s annotated", n.Kind.Kind)
	}
}

// suspendTime bounds how long it takes to suspend an object again when the
// command is over, perhaps because of Ctrl-C.
const suspendTime = 5 * time.Second

// suspendAgain also works after --timeout and Ctrl-C: an object that was
// suspended must not stay resumed because the wait has ended.
func (r *Reconciler) suspendAgain(n *node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.user), suspendTime)
	defer cancel()
	err := r.client.WithServedVersion(ctx, n.Kind, func(res kube.Resource) error {
		_, err := r.client.MergePatch(ctx, res, n.Namespace, n.Name, n.Kind.Suspension.Change(true))
		return err
	})
	if err != nil {
		return clierr.WithHint(fmt.Sprintf("flux suspend %s %s -n %s", n.Kind.Noun(), n.Name, n.Namespace), "suspending %s again: %w", n.Target, err)
	}
	r.app.UI.Success("%s is suspended again", n.Target)
	return nil
}
