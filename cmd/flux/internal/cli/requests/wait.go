package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// errBlocked is returned if a controller has postponed an object because a
// dependency that is reconciled at the same time was not ready yet.
var errBlocked = errors.New("waiting for a dependency")

// errStale is returned if a controller has handled a request before it received
// the revision that the source has fetched.
var errStale = errors.New("the controller reconciled an earlier revision of the source")

// attempts is the maximum number of requests for an object: one more after a
// dependency became ready, and one more after a stale result.
const attempts = 3

// await waits until the controller has handled a request, starting at the version of the patch, so
// that no result is missed and nothing is requested twice.
func (r *runner) await(ctx context.Context, n *node, token string, attempt int) error {
	if n.Kind.Static != nil && n.Kind.Static(n.last) {
		r.printDone(n, "reconciliation not supported by the object")
		return nil
	}
	if attempt == 0 && !r.act.Many() {
		r.act.App.UI.Waiting("waiting for %s reconciliation", n.Kind.Kind)
	}
	goal := reconcile.Goal{State: reconcile.Ready, Attempt: true, Token: token, Answer: true}
	subject := n.Target
	subject.Object = n.last
	result := r.waiter.Await(ctx, goal, subject, n.sub)
	if result.Last != nil {
		n.last = result.Last
	}
	var final *reconcile.FinalError
	answered := result.Err == nil || errors.As(result.Err, &final) && !final.Suspended
	switch last := attempt == attempts-1; {
	case answered && attempt == 0 && r.blocked(n):
		return errBlocked
	case answered && !last && stale(n):
		return errStale
	case result.Err == nil:
		r.printDone(n, result.Done())
		return nil
	case answered:
		return report.Unready(n.Target, n.last, "%s is not ready: %s", n.Target, report.Condition(n.Kind, n.last))
	case final != nil:
		return SuspendedError(n.Target, n.last)
	case errors.Is(result.Err, reconcile.ErrDeleted):
		return fmt.Errorf("%s was %w", n.Target, result.Err)
	}
	return r.tooLate(n, result.Err)
}

// update shows the state of an object that its controller reconciles.
func (r *runner) update(p reconcile.Progress) {
	if k := p.Subject.Kind; k.Ready(p.Object).Status == "Unknown" || k.Pending(p.Object) {
		r.states.Update(p.Subject, p.Object, report.Condition(k, p.Object))
	}
}

func (r *runner) printDone(n *node, done string) {
	if r.act.Many() {
		done = n.String() + ": " + done
	}
	r.act.App.UI.Success("%s", done)
}

// tooLate replaces an exceeded deadline with an error that contains the state of the object.
func (r *runner) tooLate(n *node, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	state := "not requested: its source was not reconciled in time"
	if n.last != nil {
		state = report.Condition(n.Kind, n.last)
	}
	failure := report.Unready(n.Target, n.last, "%s", report.TimedOut(r.act.App.Global.Timeout, n.Named(), "be reconciled", state))
	failure.Late = true
	return failure
}

// stale reports whether a result is for an earlier revision than the one that a source has fetched:
// the request may reach the controller before the watch event of the source.
func stale(n *node) bool {
	return slices.ContainsFunc(n.before, func(s edge) bool {
		fetched := s.Kind.Result.String(s.last)
		return !s.dependency && fetched != "" && !n.Kind.Tried(n.last, s.Kind, fetched)
	})
}

// blocked reports whether an object only failed because a dependency that this command also
// reconciles was not ready. All objects are requested at once, so a controller may reconcile an
// object before its dependency and postpone it until its interval. Messages about other
// dependencies are failures.
func (r *runner) blocked(n *node) bool {
	ready := n.Kind.Ready(n.last)
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

// dependencies returns the nodes of the dependencies of an object.
func (r *runner) dependencies(n *node) []*node {
	var list []*node
	for _, t := range n.Kind.DependenciesOf(n.last) {
		d, ok := r.nodes[objref.Target{Kind: n.Kind, Namespace: t.Namespace, Name: t.Name}.Key()]
		if ok && d != n && d.requested {
			list = append(list, d)
		}
	}
	return list
}

// awaitDependencies waits until the dependencies of an object are reconciled. For
// a circular dependency it returns at the deadline.
func (r *runner) awaitDependencies(ctx context.Context, n *node) error {
	for _, d := range r.dependencies(n) {
		select {
		case <-ctx.Done():
			return r.tooLate(n, ctx.Err())
		case <-d.done:
		}
		if d.err != nil {
			return report.Unready(n.Target, n.last, "%s is not ready: its dependency %s is not ready", n.Target, d.Target)
		}
	}
	return nil
}
