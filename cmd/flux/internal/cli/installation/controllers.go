// Package installation has the flags for manifests and the queries for the
// installed Flux that install, bootstrap, check, uninstall and version share.
package installation

import (
	"context"
	"errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// ReportNotReady reports the controllers that are not ready, with each cause
// once.
func ReportNotReady(a *app.App, e *diagnose.NotReadyError, ways ...string) error {
	told := make([]string, len(e.Troubles))
	for i, t := range e.Troubles {
		told[i] = redact.Text(t.Message)
		a.UI.Failure("%s: deployment not ready: %s", t.Name, told[i])
	}
	if errors.Is(e, context.DeadlineExceeded) {
		a.UI.Failure("timed out after %s waiting for the controllers to become ready", a.Global.Timeout)
	}
	report.PrintCauses(a, e.Verdict(), told, ways)
	return clierr.ErrReported
}
