// Package installflags has the flags for the Flux manifests and the queries for installed
// components that install, bootstrap, check, uninstall and version share.
package installflags

import (
	"context"
	"errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

// ReportNotReady reports the controllers that are not ready, with each cause
// once.
func ReportNotReady(a *app.App, e *rollout.NotReadyError, ways ...string) error {
	told := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		told[i] = redact.Text(p.Message)
		a.UI.Failure("%s: deployment not ready: %s", p.Name, told[i])
	}
	if errors.Is(e, context.DeadlineExceeded) {
		a.UI.Failure("%s waiting for the controllers to become ready", &clierr.TimeoutError{After: a.Global.Timeout})
	}
	report.PrintCauses(a, diagnose.NotReady(e), told, ways)
	return clierr.ErrReported
}
