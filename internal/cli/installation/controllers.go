// Package installation has what install, bootstrap, check, uninstall and
// version share: the manifests and what is installed.
package installation

import (
	"context"
	"errors"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// ReportNotReady shows which controllers are not ready, and why: a cause that
// several have once.
func ReportNotReady(a *app.App, e *diagnose.NotReadyError, ways ...string) error {
	told := make([]string, len(e.Troubles))
	for i, t := range e.Troubles {
		told[i] = redact.Text(t.Message)
		a.UI.Failure("%s: deployment not ready: %s", t.Name, told[i])
	}
	if errors.Is(e, context.DeadlineExceeded) {
		a.UI.Failure("not all controllers were ready within --timeout %s", a.Global.Timeout)
	}
	report.PrintCauses(a, e.Verdict(), told, ways)
	return clierr.ErrReported
}
