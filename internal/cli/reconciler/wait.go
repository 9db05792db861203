package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// errBlocked says that a controller has put an object off because a dependency
// that is being reconciled at the same time was not done yet.
var errBlocked = errors.New("waiting for a dependency")

// errStale says that a controller has answered without having seen what its
// source has fetched.
var errStale = errors.New("answered for an earlier revision of the source")

// attempts bounds how often an object is asked: once more when a dependency is
// done, once more when the answer was stale.
const attempts = 3

// await waits for the controller's answer to a request, from the version of the
// patch on, so that no answer is missed and nothing is requested twice.
func (r *Reconciler) await(ctx context.Context, n *node, token string, attempt int) error {
	if n.Kind.Static != nil && n.Kind.Static(n.Last) {
		r.sayDone(n, "reconciliation not supported by the object")
		return nil
	}
	if attempt == 0 && !r.many {
		r.app.UI.Waiting("waiting for %s reconciliation", n.Kind.Kind)
	}
	goal := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: token, Answer: true}
	subject := n.Subject()
	subject.Object = n.Last
	result := r.waiter.Await(ctx, goal, subject, n.sub)
	if result.Last != nil {
		n.Last = result.Last
	}
	var final *reconcile.FinalError
	answered := result.Err == nil || errors.As(result.Err, &final) && !final.Suspended
	switch last := attempt == attempts-1; {
	case answered && attempt == 0 && r.blocked(n):
		return errBlocked
	case answered && !last && stale(n):
		return errStale
	case result.Err == nil:
		r.sayDone(n, result.Done())
		return nil
	case answered:
		return report.Unready(n.Target, n.Last, "%s is not ready: %s", n.Target, report.Condition(n.Kind, n.Last))
	case final != nil:
		return SuspendedError(n.Target, n.Last)
	case errors.Is(result.Err, reconcile.ErrDeleted):
		return fmt.Errorf("%s was %w", n.Target, result.Err)
	}
	return r.tooLate(n, result.Err)
}

// update shows the state of an object that its controller reconciles.
func (r *Reconciler) update(p reconcile.Progress) {
	if k := p.Subject.Kind; k.Ready(p.Object).Status == "Unknown" || k.Pending(p.Object) {
		r.states.Update(p.Subject, p.Object, report.Condition(k, p.Object))
	}
}

func (r *Reconciler) sayDone(n *node, done string) {
	if r.many {
		done = n.String() + ": " + done
	}
	r.app.UI.Success("%s", done)
}

// tooLate returns the error of an object that was not reconciled within --timeout.
func (r *Reconciler) tooLate(n *node, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	state := "not requested: its source was not reconciled in time"
	if n.Last != nil {
		state = report.Condition(n.Kind, n.Last)
	}
	failure := report.Unready(n.Target, n.Last, "%s", report.TimedOut(r.app, n.Named(), "be reconciled", state))
	failure.Late = true
	return failure
}

// stale reports whether an answer is about an earlier revision than the one that
// a source was just seen to have fetched: a request may overtake the event of
// the source on their way to the controller, which then works on what it knew.
func stale(n *node) bool {
	return slices.ContainsFunc(n.before, func(s edge) bool {
		fetched := s.Kind.Result.String(s.Last)
		return !s.dependency && fetched != "" && !n.Kind.Tried(n.Last, s.Kind, fetched)
	})
}

// blocked tells whether a failure is only that a dependency among the objects
// that are reconciled here was not done: all of them are asked at once, so a
// controller may look at one before it is through with what that one depends
// on, and puts it off until its own interval is over. That is no outcome. Where
// the message names another dependency, or the one it names has failed, it is.
func (r *Reconciler) blocked(n *node) bool {
	ready := n.Kind.Ready(n.Last)
	if ready.Reason != "DependencyNotReady" {
		return false
	}
	for _, d := range r.dependencies(n) {
		if strings.Contains(ready.Message, d.Namespace+"/"+d.Name) {
			return true
		}
	}
	return false
}

// dependencies are the nodes of the objects that an object depends on.
func (r *Reconciler) dependencies(n *node) []*node {
	var list []*node
	for _, t := range n.Kind.DependenciesOf(n.Last) {
		d, ok := r.nodes[objref.Target{Kind: n.Kind, Namespace: t.Namespace, Name: t.Name}.Key()]
		if ok && d != n && d.ask {
			list = append(list, d)
		}
	}
	return list
}

// awaitDependencies waits until what an object depends on is done with. A
// cycle of dependencies ends with --timeout.
func (r *Reconciler) awaitDependencies(ctx context.Context, n *node) error {
	for _, d := range r.dependencies(n) {
		select {
		case <-ctx.Done():
			return r.tooLate(n, ctx.Err())
		case <-d.done:
		}
		if d.err != nil {
			return report.Unready(n.Target, n.Last, "%s is not ready: its dependency %s is not", n.Target, d.Target)
		}
	}
	return nil
}
