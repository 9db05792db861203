package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// waiter reports how the objects of a command line are waited for.
type waiter struct {
	app     *app
	client  *kube.Client
	options *waitOptions
	// user ends with the command and not with --timeout.
	user   context.Context
	states *states

	mu       sync.Mutex
	failures map[string]error
	results  []reconcile.Result
}

// run waits for the objects, and reports each that falls short at once.
func (w *waiter) run(ctx context.Context, c chosen) error {
	g := reconcile.Goal{State: w.options.state, Revision: w.options.revision}
	w.say(c.targets, g)
	w.states = w.app.newStates(len(c.targets), g.State)
	watches := reconcile.NewWatches(w.client)
	c.share(watches)
	engine := reconcile.Waiter{
		Watches: watches, Goal: g, Children: w.options.children,
		Progress: func(p reconcile.Progress) { w.states.tell(p.Subject, p.Object, w.state(g, p)) },
		Ended:    w.ended,
	}
	w.results = engine.Run(ctx, subjectsOf(c.targets))
	w.states.close()
	var failed error
	var failures []*unreadyError
	for _, result := range w.results {
		err := w.failures[result.Subject.String()]
		var failure *unreadyError
		if errors.As(err, &failure) {
			failures = append(failures, failure)
		}
		if err != nil {
			failed = errReported
		}
	}
	w.app.blame(w.user, w.app.doctor(w.client), failures)
	return failed
}

func subjectsOf(targets []target) []reconcile.Subject {
	var list []reconcile.Subject
	for _, t := range targets {
		list = append(list, t.subject())
	}
	return list
}

func (t target) subject() reconcile.Subject {
	return reconcile.Subject{Kind: t.kind, Namespace: t.namespace, Name: t.name, Object: t.object}
}

func targetOf(s reconcile.Subject) target {
	return target{kind: s.Kind, namespace: s.Namespace, name: s.Name, object: s.Object}
}

// outcomes are those of all objects that were waited for.
func (w *waiter) outcomes() []objectOutcome {
	var list []objectOutcome
	for _, result := range w.results {
		list = append(list, outcomeOf(targetOf(result.Subject), result.Last, w.failures[result.Subject.String()]))
	}
	return list
}

func (w *waiter) say(targets []target, g reconcile.Goal) {
	switch len(targets) {
	case 0:
	case 1:
		w.app.ui.Waiting("waiting until %s is %s", targets[0].named(), g)
	default:
		w.app.ui.Waiting("waiting until %s are %s", countTargets(targets), g)
	}
}

// ended reports what has become of an object.
func (w *waiter) ended(result reconcile.Result) {
	s := result.Subject
	err := w.inWords(result)
	w.states.end(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures[s.String()] = err
	switch {
	case err != nil && w.user.Err() == nil:
		w.app.report(err)
	case err == nil:
		w.app.ui.Success("%s is %s%s", s, reconcile.Goal{State: result.Goal.State}, atRevision(result))
	}
}

func atRevision(result reconcile.Result) string {
	path, ok := reconcile.RevisionPath(result.Subject.Kind)
	if revision := path.String(result.Last); ok && revision != "" && result.Goal.State == reconcile.Ready {
		return " at " + revision
	}
	return ""
}

// state is what an object says while it is waited for.
func (w *waiter) state(g reconcile.Goal, p reconcile.Progress) string {
	text := missed(g, p.Subject.Kind, p.Object)
	if p.Attempt != "" {
		text += "; not final: " + p.Attempt
	}
	return text
}

// missed is how an object falls short of a goal.
func missed(g reconcile.Goal, k controllers.Kind, o controllers.Object) string {
	text := g.Missed(k, o)
	switch {
	case text != "":
		return text
	case g.State == reconcile.Deleted:
		return "its deletion waits for " + finalizers(o)
	default:
		return condition(k, o)
	}
}

// inWords makes the error that the user sees.
func (w *waiter) inWords(result reconcile.Result) error {
	s, t, o, g := result.Subject, targetOf(result.Subject), result.Last, result.Goal
	var final *reconcile.FinalError
	switch err := missing(result.Err, t); {
	case errors.As(err, &final) && final.Suspended:
		return hinted(fmt.Sprintf("flux resume %s %s -n %s", s.Kind.Noun(), s.Name, s.Namespace),
			"%s is suspended%s; its last state: %s", s, noted(o), condition(s.Kind, o))
	case errors.As(err, &final) && final.Source.Name != "":
		return unready(t, o, "%s is not ready, and its source %s is stalled: %s", s, final.Source, condition(s.Kind, o))
	case errors.As(err, &final):
		return unready(t, o, "%s is stalled: %s", s, orElse(final.Message, condition(s.Kind, o)))
	case errors.Is(err, reconcile.ErrDeleted):
		return fmt.Errorf("%s was %w", s, err)
	case errors.Is(err, context.DeadlineExceeded) && o != nil:
		late := w.app.timedOut(s.Target(), g.Become(), missed(g, s.Kind, o))
		if !g.Explicable(s.Kind, o) {
			return errors.New(late)
		}
		failure := unready(t, o, "%s", late)
		failure.late = true
		return failure
	default:
		return err
	}
}

// timedOut is the message of a wait that --timeout has ended.
func (a *app) timedOut(t controllers.Target, become, state string) string {
	return fmt.Sprintf("timed out after %s waiting for %s to %s: %s", brief(a.global.timeout), t, become, state)
}

// brief is a duration without units of which there are none.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
