package requests

import (
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
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
