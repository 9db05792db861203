// Package requests sends requests for reconciliations in the order of sources and
// dependencies, and reports their outcomes.
package requests

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// runner requests the reconciliation of objects, sources and dependencies
// first, and waits for the results.
type runner struct {
	act     *kinds.Act
	options Options
	// started is the time from which the request tokens are derived.
	started time.Time

	watches *reconcile.Watches
	waiter  *reconcile.Waiter
	slots   chan struct{}
	states  *report.Progress

	mu    sync.Mutex
	nodes map[string]*node
	// order has the nodes of the targets.
	order []*node
}

// node is an object to reconcile, after the objects in before.
type node struct {
	objref.Target
	before []edge
	// requested is false for objects that only lead to their sources. wanted is true for the
	// targets.
	requested, wanted bool
	sub               *reconcile.Subscription

	// last is the last known state, nil before the request.
	last controllers.Object
	err  error
	done chan struct{}
}

// edge leads to an object that is reconciled first: a source or, if dependency is set, an object in
// spec.dependsOn.
type edge struct {
	*node
	dependency bool
}

// failed returns the error for an object whose source or dependency has failed.
func (e edge) failed(n *node) error {
	if e.dependency {
		return report.Unready(n.Target, n.last, "%s was not reconciled: its dependency %s is not ready", n.Target, e.Target)
	}
	return report.Unready(n.Target, n.last, "%s was not reconciled: its source %s could not be reconciled", n.Target, e.Target)
}

// requestsAtOnce is the maximum number of parallel requests.
const requestsAtOnce = 16

// Run reconciles the targets of a verb, with their sources if requested. It reports each failure as soon as it
// occurs, and sets the results of the verb.
func Run(ctx context.Context, act *kinds.Act, o Options) error {
	r := &runner{
		act: act, options: o, started: act.App.Now(),
		watches: reconcile.NewWatches(act.Client), slots: make(chan struct{}, requestsAtOnce), nodes: map[string]*node{},
	}
	r.waiter = &reconcile.Waiter{Watches: r.watches, Progress: r.update}
	defer r.record()
	return r.run(ctx)
}

func (r *runner) run(ctx context.Context) error {
	r.plan(ctx)
	r.act.Share(r.watches)
	r.subscribe()
	defer r.watches.Wait()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	r.watches.Start(watching)
	if r.act.Many() && !r.options.Resume {
		r.act.App.UI.Action("reconciling %s", objref.Count(r.act.Targets))
	}
	r.states = report.NewProgress(r.act.App.UI, r.act.App.Now, len(r.nodes), "reconciled")
	var wg sync.WaitGroup
	for _, n := range r.nodes {
		wg.Go(func() {
			defer close(n.done)
			defer r.states.Done(n.Target)
			if n.err == nil {
				n.err = r.reconcile(ctx, n)
			}
			if n.err != nil && r.act.User.Err() == nil {
				r.act.App.Report(n.err)
			}
		})
	}
	wg.Wait()
	r.states.Close()
	r.summarize()
	report.PrintRootCauses(r.act.User, r.act.App, report.Diagnoser(r.act.App, r.act.Client), r.failures())
	for _, n := range r.order {
		if n.err != nil {
			return clierr.ErrReported
		}
	}
	return nil
}

// summarize prints the number of reconciled objects if there are several.
func (r *runner) summarize() {
	if !r.act.Many() || r.options.Resume || !r.options.Wait || r.act.User.Err() != nil {
		return
	}
	done := 0
	for _, n := range r.order {
		done += report.OneIf(n.err == nil)
	}
	say := r.act.App.UI.Success
	if done < len(r.order) {
		say = r.act.App.UI.Failure
	}
	say("%d of %d objects reconciled", done, len(r.order))
}

// failures returns the failures, starting with the targets.
func (r *runner) failures() []*report.UnreadyError {
	var list []*report.UnreadyError
	add := func(n *node) {
		var failure *report.UnreadyError
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

// subscribe creates the watches, before the first request.
func (r *runner) subscribe() {
	var subjects []objref.Target
	for _, n := range r.nodes {
		if n.requested {
			subjects = append(subjects, n.Target)
		}
	}
	r.watches.ShareMany(subjects)
	for _, n := range r.nodes {
		if n.requested {
			n.sub = r.watches.Subscribe(n.Target)
		}
	}
}

// record sets the results of the command: the outcomes, and with Resume whether each object was resumed.
func (r *runner) record() {
	var outcomes []report.Outcome
	var resumed []objref.Target
	for _, n := range r.order {
		outcome := report.OutcomeOf(n.Target, n.last, n.err)
		switch {
		case !r.options.Resume:
		case n.last != nil && !n.Kind.Suspension.Is(n.last):
			outcome.Result = report.ResultResumed
			resumed = append(resumed, n.Target)
		default:
			outcome.Result = report.ResultFailed
		}
		outcomes = append(outcomes, outcome)
	}
	r.act.Outcomes(outcomes, resumed)
}

// reconcile reconciles an object after the objects in before.
func (r *runner) reconcile(ctx context.Context, n *node) (err error) {
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
	if !n.requested {
		return nil
	}
	change := map[string]any{}
	switch {
	case r.options.Resume:
		change = n.Kind.Suspension.Resumption()
		if r.options.Unchanged {
			change["metadata"].(map[string]any)["resourceVersion"] = controllers.Path{"metadata.resourceVersion"}.String(n.Object)
		}
	case r.options.Once && n.wanted:
		if err := n.Target.Read(ctx, r.act.Client); err != nil {
			return err
		}
		if n.Kind.Suspension.Is(n.Object) {
			change = n.Kind.Suspension.Change(false)
			defer func() { err = errors.Join(err, r.suspendAgain(n)) }()
		}
	}
	return r.requestAndWait(ctx, n, change)
}

// requestAndWait repeats a request if its result is stale, or if the controller
// has postponed the object until its interval because of a dependency.
func (r *runner) requestAndWait(ctx context.Context, n *node, change map[string]any) error {
	for attempt := range attempts {
		token := r.started.Add(time.Duration(attempt) * time.Millisecond).Format(time.RFC3339Nano)
		patched, err := r.request(ctx, n, token, maps.Clone(change), attempt)
		if err != nil {
			return err
		}
		n.last = patched
		if n.Kind.Suspension.Is(patched) {
			return SuspendedError(n.Target, patched)
		}
		if !r.options.Wait || n.Kind.Done == "" {
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

// request sends the patch that requests a reconciliation, together with change.
func (r *runner) request(ctx context.Context, n *node, token string, change map[string]any, attempt int) (patched controllers.Object, err error) {
	annotations := map[string]any{}
	if requestable(n.Kind) {
		annotations[controllers.RequestAnnotation] = token
	}
	if r.options.Force && n.Kind.Release {
		annotations[forceAnnotation] = token
	}
	if r.options.Reset && n.Kind.Release {
		annotations[resetAnnotation] = token
	}
	controllers.Annotate(change, annotations)
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	if attempt == 0 {
		r.printRequest(n)
	}
	patched, err = n.Target.Patch(ctx, r.act.Client, change)
	if err == nil && attempt == 0 && !n.Kind.Suspension.Is(patched) {
		r.printRequested(n)
	}
	return patched, err
}

func (r *runner) printRequest(n *node) {
	switch {
	case r.options.Resume:
		r.act.App.UI.Action("resuming %s %s in %s namespace", n.Kind.Noun(), n.Name, n.Namespace)
	case !r.act.Many():
		r.act.App.UI.Action("annotating %s %s in %s namespace", n.Kind.Kind, n.Name, n.Namespace)
	}
}

func (r *runner) printRequested(n *node) {
	switch {
	case r.options.Resume && r.act.Many():
		r.act.App.UI.Success("%s %s/%s resumed", n.Kind.Noun(), n.Namespace, n.Name)
	case r.options.Resume:
		r.act.App.UI.Success("%s resumed", n.Kind.Noun())
	case r.act.Many() && !r.options.Wait:
		r.act.App.UI.Success("%s annotated", n.Target)
	case !r.act.Many():
		r.act.App.UI.Success("%s annotated", n.Kind.Kind)
	}
}

// suspendTime is the timeout for suspending an object again, which also happens after Ctrl-C.
const suspendTime = 5 * time.Second

// suspendAgain suspends an object, even after --timeout or Ctrl-C.
func (r *runner) suspendAgain(n *node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.act.User), suspendTime)
	defer cancel()
	_, err := n.Target.Patch(ctx, r.act.Client, n.Kind.Suspension.Change(true))
	if err != nil {
		return hint.Errorf(hint.Command("flux suspend "+n.Kind.Noun()+" %s -n %s", n.Name, n.Namespace), "suspending %s again: %w", n.Target, err)
	}
	r.act.App.UI.Success("%s is suspended again", n.Target)
	return nil
}
