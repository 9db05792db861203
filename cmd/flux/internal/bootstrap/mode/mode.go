// Package mode runs bootstrap, its preflight checks or a dry run, and reports the progress.
package mode

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

// Flags holds the flags that select the steps of bootstrap.
type Flags struct {
	preflight, dryRun, pullRequest, rotateKey bool
	// output is the output format of --preflight and --dry-run, or "" for text.
	output string
}

// Add registers the flags.
func (m *Flags) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&m.preflight, "preflight", false, "run the preflight checks without making changes")
	fs.BoolVar(&m.dryRun, "dry-run", false, "print the changes without making them")
	fs.BoolVar(&m.pullRequest, "pull-request", false, "push to a separate branch and open a pull request; run the command again after the merge")
	fs.BoolVar(&m.rotateKey, "rotate-key", false, "replace the SSH key or deploy token of the cluster")
	command.AddOutput(fs, &m.output, "output format of --preflight and --dry-run", "json", "yaml")
}

// Validate returns an error for flags that are mutually exclusive.
func (m *Flags) Validate() error {
	switch {
	case m.preflight && m.dryRun:
		return errors.New("--preflight and --dry-run are mutually exclusive: a dry run includes the preflight checks")
	case m.output != "" && !m.preflight && !m.dryRun:
		return errors.New("--output requires --preflight or --dry-run")
	default:
		return nil
	}
}

// Run runs the steps of a plan that the flags select and reports progress.
func (m *Flags) Run(ctx context.Context, a *app.App, plan bootstrap.Plan) error {
	cfg, err := a.RESTConfig()
	if err != nil {
		return err
	}
	plan.ChangeRequest, plan.RotateKey = m.pullRequest, m.rotateKey
	if m.preflight || m.dryRun || !a.UI.Interactive() {
		plan.Key.Trust = nil // no credentials are sent, or the user cannot confirm
	}
	user := ctx
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	progress := &progress{terminal: a.UI, app: a}
	switch {
	case m.preflight:
		return preflight(ctx, a, cfg, plan, progress, m.output)
	case m.dryRun:
		return dryRun(ctx, a, cfg, plan, progress, m.output)
	}
	result, err := bootstrap.Run(ctx, cfg, plan, progress)
	if err != nil {
		return explainUnready(user, a, plan.Components.Namespace, err)
	}
	if result.Request != nil {
		return a.Printf("%s\n", result.Request.URL)
	}
	return nil
}

// explainUnready reports why controllers or sync objects are not ready.
func explainUnready(ctx context.Context, a *app.App, namespace string, err error) error {
	var known *hint.Error
	var controllersDown *rollout.NotReadyError
	var object *bootstrap.UnreadyError
	if !errors.As(err, &known) || ctx.Err() != nil {
		return explainFailed(ctx, a, err)
	}
	switch {
	case errors.As(err, &controllersDown):
		return installflags.ReportNotReady(a, controllersDown, known.Hint)
	case errors.As(err, &object):
		client, clientErr := a.Client()
		if clientErr != nil {
			return clientErr
		}
		k, _ := controllers.FindKind(object.Kind)
		failure := report.Unready(objref.Target{Kind: k, Namespace: object.Namespace, Name: object.Name}, object.Object, "%s", object)
		failure.Remedies = []string{known.Hint}
		doctor := report.Diagnoser(a, client)
		doctor.Home = namespace
		return report.Fail(ctx, a, doctor, failure)
	default:
		return explainFailed(ctx, a, err)
	}
}

// explainFailed reports all failed preflight checks.
func explainFailed(ctx context.Context, a *app.App, err error) error {
	var several *bootstrap.PreflightError
	if !errors.As(err, &several) || ctx.Err() != nil {
		return err
	}
	for _, one := range several.Errs {
		a.Report(one)
	}
	return clierr.ErrReported
}

// checkReport is the output for a preflight check.
type checkReport struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

func preflight(ctx context.Context, a *app.App, cfg *rest.Config, plan bootstrap.Plan, progress bootstrap.Progress, format string) error {
	checks, err := bootstrap.Preflight(ctx, cfg, plan, progress)
	if format != "" && ctx.Err() == nil && len(checks) > 0 {
		reports := make([]checkReport, len(checks))
		for i, c := range checks {
			reports[i] = checkReport{Name: c.Name, Passed: c.Err == nil}
			if c.Err != nil {
				message, hint := clierr.Explain(c.Err, nil)
				reports[i].Message, reports[i].Hint = redact.Text(message), redact.Text(hint)
			}
		}
		if err := a.Encode(format, map[string]any{"passed": err == nil, "checks": reports}); err != nil {
			return err
		}
	}
	if err != nil {
		return explainFailed(ctx, a, err)
	}
	a.UI.Success("preflight checks passed; nothing was changed")
	return nil
}

func dryRun(ctx context.Context, a *app.App, cfg *rest.Config, plan bootstrap.Plan, progress bootstrap.Progress, format string) error {
	p, err := bootstrap.DryRun(ctx, cfg, plan, progress)
	if err != nil {
		return explainFailed(ctx, a, err)
	}
	if format != "" {
		return a.Encode(format, p)
	}
	var text strings.Builder
	for _, change := range p.Host {
		fmt.Fprintf(&text, "host: would %s\n", change)
	}
	for _, o := range p.Cluster {
		fmt.Fprintf(&text, "cluster: %s %s\n", o, o.Action)
	}
	if p.Patch == "" {
		fmt.Fprintf(&text, "repository: branch %s unchanged\n", p.Branch)
	} else {
		fmt.Fprintf(&text, "repository: branch %s would be changed\n", p.Branch)
	}
	// patch(1) ignores the lines above, so that the output can be applied.
	text.WriteString(shortened(a, p.Patch))
	if err := a.Document(text.String()); err != nil {
		return err
	}
	a.UI.Success("nothing was changed")
	return nil
}

// shownLines is the maximum number of lines of a new file on a terminal.
const shownLines = 20

// shortened truncates new files on a terminal, because the manifests of the
// controllers have thousands of lines. Piped output is complete.
func shortened(a *app.App, patch string) string {
	if !ui.IsTerminal(a.Out) {
		return patch
	}
	var short strings.Builder
	for i, file := range strings.SplitAfter(patch, "\ndiff --git ") {
		lines := strings.SplitAfter(file, "\n")
		isNew := len(lines) > 1 && strings.HasPrefix(lines[1], "new file")
		if !isNew || len(lines) <= 2*shownLines {
			short.WriteString(file)
			continue
		}
		short.WriteString(strings.Join(lines[:shownLines], ""))
		fmt.Fprintf(&short, "… %d more lines; pipe the output to see all of them\n", len(lines)-shownLines)
		if strings.HasSuffix(file, "\ndiff --git ") && i >= 0 {
			short.WriteString("diff --git ")
		}
	}
	return short.String()
}
