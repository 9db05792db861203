package changes

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// Values of --fail-on, from the strictest.
const (
	failOnChange = "change"
	failOnDanger = "danger"
	failOnError  = "error"
)

// addGate adds the flags that decide which changes fail the command.
func (o *Options) addGate(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.failOn = failOnChange
	fs.Var(command.Choice{Value: &o.failOn, Allowed: []string{failOnChange, failOnDanger, failOnError}}, "fail-on",
		`lowest level that fails the command: change, danger (see "flux help dangers") or error`)
	fs.StringSliceVar(&o.allow, "allow", nil, "dangers to accept with --fail-on=danger, e.g. major-image-update")
	fs.BoolVar(&o.exitCode, "exit-code", true, "exit with 1 if there are changes; --exit-code=false is the same as --fail-on=error")
	_ = cmd.RegisterFlagCompletionFunc("allow", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		for _, r := range review.Rules() {
			ids = append(ids, r.ID+"\t"+r.Effect)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}) // fails only for unknown flags
}

// Check validates the flags of Add.
func (o *Options) Check(cmd *cobra.Command) error {
	if !o.exitCode {
		if cmd.Flags().Changed("fail-on") && o.failOn != failOnError {
			return hint.Errorf("omit one of them", "--exit-code=false contradicts --fail-on=%s", o.failOn)
		}
		o.failOn = failOnError
	}
	if o.images && o.Timeline {
		return hint.Errorf("use one of them", "--images and --timeline are mutually exclusive")
	}
	for _, output := range o.outputs {
		for flag, set := range map[string]bool{"--images": o.images, "--timeline": o.Timeline, "--field-owners": o.FieldOwners} {
			if set && !slices.Contains(render.ListFormats(), output.Format) {
				return hint.Errorf("use -o json, or omit "+flag, "%s has no %s format", flag, output.Format)
			}
		}
	}
	var unknown *review.UnknownRuleError
	if err := review.Check(o.allow); errors.As(err, &unknown) {
		return hint.Errorf(`list the dangers with "flux help dangers"`, "unknown danger %q in --allow", unknown.ID)
	}
	return nil
}

// shownDangers is the maximum number of objects that are listed for each danger.
const shownDangers = 10

// warnOfDangers prints the dangers of all results, except notices.
func warnOfDangers(a *app.App, results []*diff.Result) {
	counts := map[string]int{}
	for _, section := range render.Sections(results) {
		for _, f := range review.Findings(section.Results) {
			if counts[f.Rule]++; !f.Notice && counts[f.Rule] <= shownDangers {
				a.UI.Warning("%s %s%s", f.Object, strings.Join(render.Effects([]diff.Danger{f.Danger}), ""), section.In())
			}
		}
	}
	for _, rule := range review.Rules() {
		if more := counts[rule.ID] - shownDangers; more > 0 && !rule.Notice {
			a.UI.Warning("%s: %d more; list them with -o json", rule.ID, more)
		}
	}
}

// exitError returns the error that sets the exit code if there are changes.
func (o *Options) exitError(a *app.App, results []*diff.Result) error {
	switch o.failOn {
	case failOnError:
		return nil
	case failOnDanger:
		blocking := review.Blocking(results)
		if len(blocking) == 0 {
			a.UI.Success("there are changes, but no dangers")
			return nil
		}
		a.UI.Failure("dangers: %d; exiting with 1 because of --fail-on=danger", len(blocking))
		a.UI.Line("  accept them with --allow %s", strings.Join(rulesOf(blocking), ","))
	default:
		a.UI.Warning("there are changes: exiting with 1")
	}
	return &clierr.ExitCodeError{Code: clierr.ExitFailed}
}

// rulesOf returns the distinct rule IDs of findings.
func rulesOf(findings []review.Finding) []string {
	var ids []string
	for _, f := range findings {
		if !slices.Contains(ids, f.Rule) {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}
