package reconciler

import (
	"fmt"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The annotations by which a reconciliation is asked for (fluxcd/pkg/apis/meta and the helm-controller's API).
const (
	RequestAnnotation = "reconcile.fluxcd.io/requestedAt"
	forceAnnotation   = "reconcile.fluxcd.io/forceAt"
	resetAnnotation   = "reconcile.fluxcd.io/resetAt"
)

// Options are the flags of reconcile.
type Options struct {
	Targets                  kinds.TargetOptions
	WithSource, Force, Reset bool
	Failed, Once, Wait       bool
	Format                   string
}

// SuspendedError says that a named object cannot be reconciled as it is.
func SuspendedError(t objref.Target, o controllers.Object) error {
	return clierr.WithHint(fmt.Sprintf("flux resume %[1]s %[2]s -n %[3]s, or once: flux reconcile %[1]s %[2]s -n %[3]s --once", t.Kind.Noun(), t.Name, t.Namespace),
		"%s is suspended%s", t, report.SuspendNote(o))
}
