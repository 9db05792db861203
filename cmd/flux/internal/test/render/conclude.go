package render

import (
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// Conclude prints the totals and returns the error that sets the exit code.
func Conclude(a *app.App, r *examine.Report) error {
	for _, m := range r.Unmatched {
		a.UI.Warning("no source has the URL in --map %s", printable.Line(redact.Text(m.URL+"="+m.Path)))
	}
	for _, line := range r.Ignored {
		a.UI.Warning("%s", printable.Line(line))
	}
	ready, all := r.Count()
	switch r.Result {
	case settle.Ready:
		a.UI.Success("%d of %s ready in %.1fs%s", ready, output.Amount(all, "Flux resource"), r.Seconds, passed(r))
		return nil
	case settle.NotReady:
		a.UI.Failure("%d of %s ready: %s", ready, output.Amount(all, "Flux resource"), problems(r))
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	a.UI.Failure("%d of %s ready; the others could not be determined: exiting with 2", ready, output.Amount(all, "Flux resource"))
	return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
}

// countTests counts the assertions with an outcome.
func countTests(r *examine.Report, o assert.Outcome) int {
	n := 0
	for _, result := range r.Tests {
		if result.Outcome == o {
			n++
		}
	}
	return n
}

// passed counts the assertions that have passed.
func passed(r *examine.Report) string {
	if len(r.Tests) == 0 {
		return ""
	}
	return ", " + output.Amount(countTests(r, assert.Passed), "assertion") + " passed"
}

// problems counts the root causes, failed assertions and conflicts.
func problems(r *examine.Report) string {
	var parts []string
	if n := len(r.Causes); n > 0 {
		parts = append(parts, output.Amount(n, "root cause"))
	}
	differs := 0
	for _, c := range r.Conflicts {
		if c.Differs {
			differs++
		}
	}
	if n := countTests(r, assert.Failed); n > 0 {
		parts = append(parts, output.Amount(n, "failed assertion"))
	}
	if differs > 0 {
		parts = append(parts, output.Amount(differs, "object")+" applied differently by two owners")
	}
	return strings.Join(parts, ", ")
}
