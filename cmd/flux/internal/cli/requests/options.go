package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Annotations that request an action from helm-controller.
const (
	forceAnnotation = "reconcile.fluxcd.io/forceAt"
	resetAnnotation = "reconcile.fluxcd.io/resetAt"
)

// Options configure the requests of Run.
type Options struct {
	// WithSource also reconciles the upstream objects.
	WithSource bool
	// Force and Reset request actions of helm-controller.
	Force, Reset bool
	// Once resumes suspended objects, and suspends them again afterwards.
	Once bool
	// Resume resumes the objects permanently.
	Resume bool
	// Unchanged rejects objects that were changed since they were listed.
	Unchanged bool
	// Wait waits for the results.
	Wait bool
}

// SuspendedError returns the error for a named object that is suspended.
func SuspendedError(t objref.Target, o controllers.Object) error {
	return hint.Errorf(hint.Command("flux resume "+t.Kind.Noun()+" %[1]s -n %[2]s, or once: flux reconcile "+t.Kind.Noun()+" %[1]s -n %[2]s --once", t.Name, t.Namespace),
		"%s is suspended%s", t, report.SuspendNote(o))
}

// Unready returns the error for the result of a wait, or nil for a ready object. An object that its controller or the timeout prevents from
// becoming ready is a report.UnreadyError. name is the object in messages.
func Unready(a *app.App, result reconcile.Result, name string) error {
	t, last, k := result.Subject, result.Last, result.Subject.Kind
	var final *reconcile.FinalError
	switch err := result.Err; {
	case errors.Is(err, context.DeadlineExceeded) && last != nil:
		state := cmp.Or(result.Goal.Missed(k, last), report.Condition(k, last))
		late := report.TimedOut(a.Global.Timeout, t.Named(), report.ShortRevision(result.Goal.Become()), state)
		failure := report.Unready(t, last, "%s", late)
		failure.Late = true
		return failure
	case errors.As(err, &final) && final.Suspended:
		return SuspendedError(t, last)
	case errors.As(err, &final) && final.Source.Name != "":
		return report.Unready(t, last, "%s is not ready: its source %s failed: %s", name, final.Source, report.Condition(k, last))
	case errors.As(err, &final):
		return report.Unready(t, last, "%s is not ready: %s", name, report.Condition(k, last))
	case errors.Is(err, reconcile.ErrDeleted):
		return fmt.Errorf("%s was %w", name, err)
	default:
		return err
	}
}
