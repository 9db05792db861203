// Package changes prints the changes that diff finds, and decides which of them fail the command.
package changes

import (
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
	"github.com/fluxkit/flux/pkg/diff/review"
	"github.com/fluxkit/flux/pkg/diff/timeline"
)

// Options holds the flag values.
type Options struct {
	// exitCode is the flag --exit-code, and failOn the lowest level that fails the command: change, danger
	// or error.
	exitCode bool
	failOn   string
	// allow contains the IDs of accepted dangers.
	allow []string
	// outputs are the report formats; the default is human on standard output.
	outputs []command.Output
	// images reports only the images that change.
	images bool
	// FieldOwners shows the field managers of changed fields.
	FieldOwners bool
	// Timeline limits the report to Timelines, one per cluster.
	Timeline  bool
	Timelines []*timeline.Prediction
	// Comparison describes the compared revisions, for comments and pages.
	Comparison render.Comparison
	// verifyImages checks that images exist in their registries and support platforms.
	verifyImages bool
	platforms    []string
	// ignoreFields has the patterns of fields that do not count as changes.
	ignoreFields []string
}

// Add adds the flags for the output and the exit code.
func (o *Options) Add(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.addGate(cmd)
	fs.StringArrayVar(&o.ignoreFields, "ignore-field", nil, "fields to ignore, e.g. spec.replicas or annotations.example.com/*")
	fs.BoolVar(&o.images, "images", false, "report only added, removed and changed images, with -o human or json")
	fs.VarP(command.Outputs{List: &o.outputs, Allowed: render.Formats()}, "output", "o", "output format, or FORMAT=FILE; repeat it for several: "+strings.Join(render.Formats(), ", "))
}

// IgnoreFields sets the default of --ignore-field.
func (o *Options) IgnoreFields(cmd *cobra.Command) {
	o.ignoreFields = review.DefaultIgnored
	cmd.Flags().Lookup("ignore-field").Usage += "; --ignore-field= for none (default: " + strings.Join(o.ignoreFields, ", ") + ")"
}

// Ignore removes the fields of --ignore-field from the changes.
func (o *Options) Ignore(results []*diff.Result) { review.Ignore(results, o.ignoreFields) }

// Print reviews the changes and prints them.
func (o *Options) Print(a *app.App, results []*diff.Result) error {
	diff.ConcealAll(results)
	review.Apply(results, o.allow)
	o.Ignore(results)
	if s := render.Sum(results); s.IgnoredFields > 0 {
		a.UI.Action("ignored fields: %d; objects without other changes: %d (see --ignore-field)", s.IgnoredFields, s.Ignored)
	}
	return o.write(a, results)
}

// style colors the output on a terminal.
func style(a *app.App) render.Style {
	if !ui.IsTerminal(a.Out) || a.Env("NO_COLOR") != "" || a.Env("TERM") == "dumb" {
		return render.Style{}
	}
	hues := map[diff.Op]color.Attribute{diff.Added: color.FgGreen, diff.Removed: color.FgRed, diff.Replaced: color.FgYellow, "": color.Bold}
	return render.Style{Paint: func(op diff.Op, text string) string {
		c := color.New(hues[op])
		c.EnableColor()
		return c.Sprint(text)
	}}
}

// Conclude prints errors, warnings and dangerous changes, and returns the
// error that sets the exit code.
func (o *Options) Conclude(a *app.App, results []*diff.Result, failed error) error {
	different := slices.ContainsFunc(results, (*diff.Result).Different)
	for _, section := range render.Sections(results) {
		if warn(a, section) {
			failed = clierr.ErrReported
		}
	}
	warnOfDangers(a, results)
	if different {
		unchangedIn(a, render.Unchanged(results))
	}
	switch {
	case failed != nil:
		return failed
	case render.Sum(results).Affected > 0:
		a.UI.Failure("not compared, although the change may affect them: %d; exiting with 2", render.Sum(results).Affected)
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	case !different && o.failOn == failOnDanger && len(review.Blocking(results)) > 0:
		return o.exitError(a, results) // orphans
	case !different && render.Sum(results).NotCompared > 0:
		a.UI.Warning("no changes in the objects that were compared; not compared: %d", render.Sum(results).NotCompared)
		return nil
	case !different && render.Sum(results).Ignored > 0:
		a.UI.Success("no changes except in ignored fields")
		return nil
	case !different && render.Sum(results).NotCorrected > 0:
		a.UI.Success("no changes to apply")
		return nil
	case !different:
		a.UI.Success("no changes")
		return nil
	}
	return o.exitError(a, results)
}

// warn prints the warnings and errors of a section, and reports whether there are errors.
func warn(a *app.App, section render.Section) (failed bool) {
	in := section.In()
	for _, r := range section.Results {
		if len(r.Hooks) > 0 && r.Different() {
			a.UI.Action("%s: the %s also runs the hooks %s%s", r.Owner, r.Step, joined(r.Hooks), in)
		}
		for _, warning := range r.Warnings {
			a.UI.Warning("%s%s", warning, in)
		}
		for _, c := range r.Changes {
			if c.Action == diff.Failed {
				a.UI.Failure("%s: %s%s", c.Object, redact.Text(c.Reason), in)
				failed = true
			}
		}
	}
	return failed
}

func joined(refs []controllers.VersionedID) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return strings.Join(names, ", ")
}

// unchangedIn prints the clusters without changes, unless all are unchanged.
func unchangedIn(a *app.App, clusters []string) {
	if len(clusters) > 0 {
		a.UI.Action("no changes in %s", strings.Join(clusters, ", "))
	}
}
