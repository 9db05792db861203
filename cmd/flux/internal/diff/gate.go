package diff

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/fold"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// What fails the command, from the strictest.
const (
	failOnChange = "change"
	failOnDanger = "danger"
	failOnError  = "error"
)

// addGate adds the flags that decide which changes fail the command.
func addGate(cmd *cobra.Command, o *options) {
	fs := cmd.Flags()
	o.failOn = failOnChange
	fs.Var(command.Choice{Value: &o.failOn, Allowed: []string{failOnChange, failOnDanger, failOnError}}, "fail-on",
		`lowest level that exits with 1: change, danger (see "flux help dangers") or error`)
	fs.StringSliceVar(&o.allow, "allow", nil, "dangers that --fail-on=danger accepts, e.g. major-image-update")
	fs.BoolVar(&o.exitCode, "exit-code", true, "exit with 1 if there are changes; false is --fail-on=error")
	_ = cmd.RegisterFlagCompletionFunc("allow", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		for _, r := range review.Rules() {
			ids = append(ids, r.ID+"\t"+r.Effect)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}) // fails only for a flag that does not exist
}

// checkGate validates the flags that decide which changes fail the command.
func checkGate(cmd *cobra.Command, o *options) error {
	if !o.exitCode {
		if cmd.Flags().Changed("fail-on") && o.failOn != failOnError {
			return hint.Errorf("omit one of them", "--exit-code=false contradicts --fail-on=%s", o.failOn)
		}
		o.failOn = failOnError
	}
	if o.images && o.timeline {
		return hint.Errorf("use one of them", "--images and --timeline are mutually exclusive")
	}
	for _, output := range o.outputs {
		if o.images && !slices.Contains(render.ImageFormats(), output.Format) {
			return hint.Errorf("use -o json, or omit --images", "--images has no %s format", output.Format)
		}
		if o.timeline && !slices.Contains(render.TimelineFormats(), output.Format) {
			return hint.Errorf("use -o json, or omit --timeline", "--timeline has no %s format", output.Format)
		}
	}
	var unknown *review.UnknownRuleError
	if err := review.Check(o.allow); errors.As(err, &unknown) {
		return hint.Errorf(`list the dangers with "flux help dangers"`, "unknown danger %q in --allow", unknown.ID)
	}
	return nil
}

// shownDangers is the number of objects that are named for each danger.
const shownDangers = 10

// warnOfDangers prints the dangers of all results, except those that the diff shows by itself.
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

// verdict returns the error that sets the exit code of a comparison with changes.
func verdict(a *app.App, o *options, results []*diff.Result) error {
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

// rulesOf returns the IDs of the rules of findings.
func rulesOf(findings []review.Finding) []string {
	var ids []string
	for _, f := range findings {
		if !slices.Contains(ids, f.Rule) {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}

// DangersTopic returns the text about dangers, with the rules.
func DangersTopic() string {
	var list strings.Builder
	for _, r := range review.Rules() {
		name := r.ID
		if r.Notice {
			name += " (notice)"
		}
		list.WriteString("\n  " + name + "\n      " + fold.Line(strings.Repeat(" ", topicIndent)+"The object "+r.Effect+". "+r.Explanation, topicIndent, topicWidth)[topicIndent:])
	}
	return `Changes that flux diff warns about.

A danger is a change that deserves a decision before it is merged. flux diff warns
about dangers on standard error, and reports them in all output formats. With
--fail-on=danger, only dangers exit with 1; other changes and notices do not.

A danger can be accepted:

  --allow RULE,…
      for all objects of the comparison.
  ` + review.AllowAnnotation + `: RULE,…
      for an object with this annotation. Only the annotation of the present
      object counts: a change cannot allow itself.

  # Fail a pull request only if it is dangerous, and accept major versions
  flux diff --base auto --path clusters/production --fail-on=danger --allow major-image-update

Rules:
` + list.String()
}

// Indentation and width of the rules in the help topic.
const (
	topicIndent = 6
	topicWidth  = 80
)
