package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// waiter prints the progress and the results of a wait.
type waiter struct {
	act     *kinds.Act
	options *options
	states  *report.Progress

	mu       sync.Mutex
	failures map[string]error
	results  []reconcile.Result
}

// run waits for the objects and reports each failure as soon as it occurs.
func (w *waiter) run(ctx context.Context) error {
	g := reconcile.Goal{State: w.options.state, Revision: w.options.revision}
	w.say(w.act.Targets, g)
	w.states = report.NewProgress(w.act.App.UI, w.act.App.Now, len(w.act.Targets), g.State)
	watches := reconcile.NewWatches(w.act.Client)
	w.act.Share(watches)
	engine := reconcile.Waiter{
		Watches: watches, Goal: g, Children: w.options.children,
		Progress: func(p reconcile.Progress) { w.states.Update(p.Subject, p.Object, w.state(g, p)) },
		Ended:    w.ended,
	}
	w.results = engine.Run(ctx, w.act.Targets)
	w.states.Close()
	var failed error
	var failures []*report.UnreadyError
	for _, result := range w.results {
		err := w.failures[result.Subject.Named().String()]
		var failure *report.UnreadyError
		if errors.As(err, &failure) {
			failures = append(failures, failure)
		}
		if err != nil {
			failed = clierr.ErrReported
		}
	}
	report.PrintRootCauses(w.act.User, w.act.App, report.Diagnoser(w.act.App, w.act.Client), failures)
	return failed
}

// outcomes returns the outcomes of all awaited objects.
func (w *waiter) outcomes() []report.Outcome {
	var list []report.Outcome
	for _, result := range w.results {
		list = append(list, report.OutcomeOf(result.Subject, result.Last, w.failures[result.Subject.Named().String()]))
	}
	return list
}

func (w *waiter) say(targets []objref.Target, g reconcile.Goal) {
	switch len(targets) {
	case 0:
	case 1:
		w.act.App.UI.Waiting("waiting until %s is %s", targets[0].Named(), g)
	default:
		w.act.App.UI.Waiting("waiting until %s are %s", objref.Count(targets), g)
	}
}

// ended prints the result for an object.
func (w *waiter) ended(result reconcile.Result) {
	s := result.Subject.Named()
	err := w.inWords(result)
	w.states.Done(result.Subject)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures[s.String()] = err
	switch {
	case err != nil && w.act.User.Err() == nil:
		w.act.App.Report(err)
	case err == nil:
		w.act.App.UI.Success("%s is %s%s", s, reconcile.Goal{State: result.Goal.State}, atRevision(result))
	}
}

func atRevision(result reconcile.Result) string {
	path, ok := reconcile.RevisionPath(result.Subject.Kind)
	if revision := path.String(result.Last); ok && revision != "" && result.Goal.State == reconcile.Ready {
		return " at " + revision
	}
	return ""
}

// state describes the intermediate state of an object.
func (w *waiter) state(g reconcile.Goal, p reconcile.Progress) string {
	text := missed(g, p.Subject.Kind, p.Object)
	if p.Attempt != "" {
		text += "; not final: " + p.Attempt
	}
	return text
}

// missed describes how an object differs from the goal.
func missed(g reconcile.Goal, k controllers.Kind, o controllers.Object) string {
	text := g.Missed(k, o)
	switch {
	case text != "":
		return text
	case g.State == reconcile.Deleted:
		return "its deletion waits for " + report.Finalizers(o)
	default:
		return report.Condition(k, o)
	}
}

// inWords returns the error to print for a result.
func (w *waiter) inWords(result reconcile.Result) error {
	s, t, o, g := result.Subject.Named(), result.Subject, result.Last, result.Goal
	var final *reconcile.FinalError
	switch err := objref.NotFound(result.Err, t); {
	case errors.As(err, &final) && final.Suspended:
		return hint.Errorf(hint.Command("flux resume "+t.Kind.Noun()+" %s -n %s", s.Name, s.Namespace),
			"%s is suspended%s; its last state: %s", s, report.SuspendNote(o), report.Condition(t.Kind, o))
	case errors.As(err, &final) && final.Source.Name != "":
		return report.Unready(t, o, "%s is not ready, and its source %s is stalled: %s", s, final.Source, report.Condition(t.Kind, o))
	case errors.As(err, &final):
		return report.Unready(t, o, "%s is stalled: %s", s, cmp.Or(final.Message, report.Condition(t.Kind, o)))
	case errors.Is(err, reconcile.ErrDeleted):
		return fmt.Errorf("%s was %w", s, err)
	case errors.Is(err, context.DeadlineExceeded) && o != nil:
		late := report.TimedOut(w.act.App.Global.Timeout, s, g.Become(), missed(g, t.Kind, o))
		if !g.HasCause(t.Kind, o) {
			return errors.New(late)
		}
		failure := report.Unready(t, o, "%s", late)
		failure.Late = true
		return failure
	default:
		return err
	}
}
