package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
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

// await watches from the patch's version on until the controller has answered
// it, so that nothing is missed and nothing is asked twice.
func (r *Reconciler) await(ctx context.Context, n *node, token string, attempt int) error {
	if n.Kind.Static != nil && n.Kind.Static(n.Last) {
		r.sayDone(n, "reconciliation not supported by the object")
		return nil
	}
	if attempt == 0 && !r.many {
		r.app.UI.Waiting("waiting for %s reconciliation", n.Kind.Kind)
	}
	version := controllers.Path{"metadata.resourceVersion"}.String(n.Last)
	err := r.watches.Follow(ctx, n.Subject(), version, n.sub, func(e kube.Event) (bool, error) {
		if e.Deleted {
			return false, fmt.Errorf("%s was deleted while it was waited for", n.Target)
		}
		n.Last = e.Object
		if !r.answered(ctx, n, token) {
			return false, nil
		}
		switch last := attempt == attempts-1; {
		case attempt == 0 && r.blocked(n):
			return false, errBlocked
		case !last && stale(n):
			return false, errStale
		}
		return true, nil
	})
	ready := n.Kind.Ready(n.Last)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r.tooLate(n, err)
	case err != nil:
		return err
	case ready.Status != "True":
		return report.Unready(n.Target, n.Last, "%s is not ready: %s", n.Target, report.Condition(n.Kind, n.Last))
	}
	done := ready.Message
	if n.Kind.Result != nil {
		done = fmt.Sprintf(n.Kind.Done, n.Kind.Result.String(n.Last))
	}
	r.sayDone(n, done)
	return nil
}

// answered reports whether the controller has finished with a request, and
// shows what the object says where it has not.
func (r *Reconciler) answered(ctx context.Context, n *node, token string) bool {
	k, o := n.Kind, n.Last
	if k.Settled(o, token) || putOff(n, token) {
		return true
	}
	if (controllers.Path{"status.lastHandledReconcileAt"}).String(o) == token {
		// helm-controller says that it is at work as long as a source is not ready.
		// A source that cannot be read is waited for.
		if failed, err := r.watches.SourceFailed(ctx, n.Subject(), o); failed && err == nil {
			return true
		}
	}
	if k.Ready(o).Status == "Unknown" || k.Pending(o) {
		r.states.Update(n.Subject(), o, report.Condition(k, o))
	}
	return false
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

// putOff reports whether a controller has handled a request without starting: a
// dependency is not ready. helm-controller still reports Reconciling then.
func putOff(n *node, token string) bool {
	ready := n.Kind.Ready(n.Last)
	return ready.Status == "False" && ready.Reason == "DependencyNotReady" &&
		(controllers.Path{"status.lastHandledReconcileAt"}).String(n.Last) == token
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
