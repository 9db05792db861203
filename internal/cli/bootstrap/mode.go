package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// mode is how far bootstrap goes.
type mode struct {
	preflight, dryRun, pullRequest, rotateKey bool
	// output is the format of what --preflight and --dry-run report, "" for text.
	output string
}

func (m *mode) add(fs *pflag.FlagSet) {
	fs.BoolVar(&m.preflight, "preflight", false, "find out whether bootstrap would work, and change nothing")
	fs.BoolVar(&m.dryRun, "dry-run", false, "print what would be created or changed, and change nothing")
	fs.BoolVar(&m.pullRequest, "pull-request", false, "commit to a branch of its own and ask for it to be merged; run again after the merge, the cluster follows")
	fs.BoolVar(&m.rotateKey, "rotate-key", false, "give the cluster a new key or deploy token, though the present one works")
	fs.VarP(command.Choice{Value: &m.output, Allowed: []string{"json", "yaml"}}, "output", "o", "print what --preflight or --dry-run reports as json or yaml")
}

// validate refuses what contradicts each other.
func (m *mode) validate() error {
	switch {
	case m.preflight && m.dryRun:
		return errors.New("give --preflight or --dry-run: a dry run begins with the preflight")
	case m.output != "" && !m.preflight && !m.dryRun:
		return errors.New("--output is for what --preflight and --dry-run report")
	default:
		return nil
	}
}

// run runs a plan as far as it is asked for and shows how it goes.
func run(ctx context.Context, a *app.App, plan bootstrap.Plan, mode mode) error {
	cfg, err := a.RESTConfig()
	if err != nil {
		return err
	}
	plan.ChangeRequest, plan.RotateKey = mode.pullRequest, mode.rotateKey
	if mode.preflight || mode.dryRun || !a.UI.Interactive() {
		plan.Key.Trust = nil // nothing is sent to the server, or nobody could answer
	}
	user := ctx
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	progress := &progress{terminal: a.UI, app: a}
	switch {
	case mode.preflight:
		return preflight(ctx, a, cfg, plan, progress, mode.output)
	case mode.dryRun:
		return dryRun(ctx, a, cfg, plan, progress, mode.output)
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

// explainUnready says why the cluster does not follow the repository, where
// that is what has failed.
func explainUnready(ctx context.Context, a *app.App, namespace string, err error) error {
	var known *bootstrap.Error
	var controllersDown *diagnose.NotReadyError
	var object *bootstrap.UnreadyError
	if !errors.As(err, &known) || ctx.Err() != nil {
		return explainFailed(ctx, a, err)
	}
	switch {
	case errors.As(err, &controllersDown):
		return installation.ReportNotReady(a, controllersDown, known.Hint)
	case errors.As(err, &object):
		client, clientErr := a.Client()
		if clientErr != nil {
			return clientErr
		}
		k, _ := controllers.FindKind(object.Kind)
		failure := report.Unready(objref.Target{Kind: k, Namespace: object.Namespace, Name: object.Name}, object.Object, "%s", object)
		failure.Remedies = []string{known.Hint}
		doctor := report.Doctor(a, client)
		doctor.Home = namespace
		return report.Fail(ctx, a, doctor, failure)
	default:
		return explainFailed(ctx, a, err)
	}
}

// explainFailed reports everything that was found wrong at once.
func explainFailed(ctx context.Context, a *app.App, err error) error {
	var several *bootstrap.PreflightError
	if !errors.As(err, &several) || ctx.Err() != nil {
		return withHint(err)
	}
	for _, one := range several.Errs {
		a.Report(withHint(one))
	}
	return clierr.ErrReported
}

// withHint takes the way out from where the library keeps it.
func withHint(err error) error {
	var known *bootstrap.Error
	if errors.As(err, &known) {
		return &clierr.HintedError{Err: err, Hint: known.Hint}
	}
	return err
}

// checkReport is how a check of the preflight is printed.
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
				message, hint := clierr.Explain(withHint(c.Err), nil)
				reports[i].Message, reports[i].Hint = redact.Text(message), redact.Text(hint)
			}
		}
		if err := printResult(a, format, map[string]any{"passed": err == nil, "checks": reports}); err != nil {
			return err
		}
	}
	if err != nil {
		return explainFailed(ctx, a, err)
	}
	a.UI.Success("bootstrap would work; nothing was changed")
	return nil
}

func dryRun(ctx context.Context, a *app.App, cfg *rest.Config, plan bootstrap.Plan, progress bootstrap.Progress, format string) error {
	p, err := bootstrap.DryRun(ctx, cfg, plan, progress)
	if err != nil {
		return explainFailed(ctx, a, err)
	}
	if format != "" {
		return printResult(a, format, p)
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
	// Patch programs skip the lines above, so the whole can be applied.
	text.WriteString(shortened(a, p.Patch))
	if err := a.Document(text.String()); err != nil {
		return err
	}
	a.UI.Success("nothing was changed")
	return nil
}

// shownLines is how much of a new file a terminal shows.
const shownLines = 20

// shortened cuts new files on a terminal: the controllers' manifests are
// thousands of lines. What is piped is whole.
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
		fmt.Fprintf(&short, "… %d more lines, which are all there when the output is piped\n", len(lines)-shownLines)
		if strings.HasSuffix(file, "\ndiff --git ") && i >= 0 {
			short.WriteString("diff --git ")
		}
	}
	return short.String()
}

func printResult(a *app.App, format string, report any) error {
	var text []byte
	var err error
	if format == "yaml" {
		text, err = output.YAML(report)
	} else {
		text, err = json.MarshalIndent(report, "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	_, err = a.Answer(format).Write(text)
	return err
}

// trustHost asks whether the key of an SSH server that nobody vouches for is
// the right one.
func trustHost(ctx context.Context, a *app.App, key bootstrap.ServerKey) error {
	a.UI.Warning("nobody vouches for the host key of %s: %s %s", key.Address, key.Type, key.Fingerprint)
	yes, err := a.Confirm(ctx, "Is it the right one?")
	if err == nil && !yes {
		return clierr.WithHint("get the server's key from who runs it, and give it with --ssh-known-hosts-file", "the host key of %s is not trusted", key.Address)
	}
	return err
}
