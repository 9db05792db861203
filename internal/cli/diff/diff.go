// Package diff has the commands below diff.
package diff

import (
	"errors"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/compare"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// NewCommand returns the command diff.
func NewCommand(a *app.App) *cobra.Command {
	return addBase(a, command.Group("diff", "Diff desired state against the cluster, or two revisions",
		newArtifact(a), newHelmRelease(a), newKustomization(a)))
}

// formats are the values of -o.
var formats = []string{"human", "unified", "json", "github", "gitlab", "html"}

func newKustomization(a *app.App) *cobra.Command {
	o, h := &compare.Options{Format: "human"}, &desired.HelmOptions{}
	withHelm := false
	k, _ := controllers.FindKind("Kustomization")
	cmd := &cobra.Command{
		Use:     "kustomization [name]",
		Aliases: []string{"ks"},
		Short:   "Show what a Kustomization would change on the cluster",
		Long: `Show what a Kustomization would change on the cluster: what it would create,
change, recreate and prune, field by field. The API server is asked for a dry
run of every object as kustomize-controller would apply it, so that defaults,
webhooks and the fields of others are as they will be.

Without --path, it compares what the source has fetched with what is live: the
drift. With --path, it compares a local folder, such as a branch that is to
be merged. With --revision or --branch, it compares another revision of the
source: of a GitRepository a branch, a tag, a reference or a commit, of an
OCIRepository a tag or a digest. It is fetched from its server, with the
credentials of the source. In a clone of the repository, a commit that the
clone has needs no server, and a revision that only the clone has is taken from
there.

Dry runs are made as the service account that the controller impersonates,
where you may do so, and on the cluster of spec.kubeConfig. What goes with a
Kustomization or HelmRelease that is pruned is shown, too. Nothing is written,
neither on the cluster nor to the folder, and secret values are not shown.

It exits with 0 when nothing would change, 1 when something would, and 2 when
that could not be found out or the controller would fail.`,
		Example: `  # Has anything drifted from what the source has?
  flux diff kustomization my-app

  # What would these files change?
  flux diff kustomization my-app --path ./apps/my-app

  # What would this branch of the source's repository change, or this commit?
  flux diff kustomization my-app --branch my-feature
  flux diff kustomization my-app --revision 5394cb7f48332b2de7c17dd8b8384bbc84b7e738

  # With the Kustomizations that it brings
  flux diff kustomization flux-system --path ./clusters/production --recursive

  # Down to what its HelmReleases would change
  flux diff kustomization flux-system --path ./clusters/production --recursive --with-helm

  # A comment for a pull request, which does not fail the pipeline
  flux diff kustomization my-app --path ./apps/my-app -o github --exit-code=false`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			if withHelm {
				return runKustomization(a, cmd, o, h, names)
			}
			return runKustomization(a, cmd, o, nil, names)
		},
	}
	fs := cmd.Flags()
	o.Add(fs)
	h.AddCapabilities(fs)
	fs.BoolVar(&withHelm, "with-helm", false, "compare what the HelmReleases do that it brings, too")
	fs.Lookup("path").Usage = "the folder to compare (default: what the source has fetched)"
	compare.AddRevision(cmd, o)
	fs.BoolVar(&o.IgnoreNotFound, "ignore-not-found", false, "take a Kustomization that is not on the cluster for one to be created, or with no file for nothing to do")
	addOutput(o, fs)
	return cmd
}

// addOutput adds the flags for how a difference is shown.
func addOutput(o *compare.Options, fs *pflag.FlagSet) {
	fs.BoolVar(&o.Progress, "progress-bar", true, "say on standard error what is being done")
	fs.BoolVar(&o.ExitCode, "exit-code", true, "exit with 1 when something would change")
	fs.VarP(command.Choice{Value: &o.Format, Allowed: formats}, "output", "o", "print as human, unified, json, github, gitlab or html")
}

// runKustomization also compares what HelmReleases do where h is given.
func runKustomization(a *app.App, cmd *cobra.Command, o *compare.Options, h *desired.HelmOptions, names []string) error {
	if len(names) != 1 {
		return clierr.WithHint("flux diff kustomization NAME", "one Kustomization name is required")
	}
	if err := o.CheckRevision(); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if !o.Progress {
		a.UI.NoProgress()
	}
	line := a.UI.Progress(a.Now, "reading Kustomization %s", names[0])
	defer line.Done()
	plan, err := compare.NewPlan(ctx, a, cmd, o, names[0])
	if err != nil || plan == nil {
		return err
	}
	line.Set("building %s", diff.RefOf(plan.Ks))
	compare.Announce(a, o, "building %s", diff.RefOf(plan.Ks))
	built, childErr := plan.Run(ctx)
	if built == nil {
		return desired.ExplainBuild(childErr)
	}
	line.Set("comparing with the cluster")
	compare.Announce(a, o, "comparing %d objects with the cluster", len(built.Objects))
	results, err := compare.Compare(ctx, a, plan, built)
	if apierrors.IsForbidden(err) {
		return clierr.WithHint("diff asks the API server for dry runs, which need the permissions to get, list and patch what is compared", "%w", err)
	}
	if err != nil {
		return err
	}
	failed := desired.ReportChildren(a, childErr)
	if h != nil {
		more, err := compare.Releases(ctx, a, o, h, plan, built, results)
		if err != nil && !errors.Is(err, clierr.ErrReported) {
			return err
		}
		if results = append(results, more...); err != nil {
			failed = err
		}
	}
	line.Done()
	if err := printChanges(a, o.Format, results); err != nil {
		return err
	}
	return conclude(a, o, results, failed)
}

// gitlabMax is how many characters GitLab takes in a comment.
const gitlabMax = 1_000_000

func printChanges(a *app.App, format string, results []*diff.Result) error {
	switch format {
	case "json":
		return render.JSON(a.Answer(format), results)
	case "unified":
		return render.Unified(a.Out, results, style(a))
	case "github":
		return render.Markdown(a.Out, results, render.CommentMax)
	case "gitlab":
		return render.Markdown(a.Out, results, gitlabMax)
	case "html":
		return render.HTML(a.Out, results)
	default:
		return render.Human(a.Out, results, style(a))
	}
}

// style is in colour on a terminal.
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

// conclude tells what went wrong and what is dangerous, and how it ends.
func conclude(a *app.App, o *compare.Options, results []*diff.Result, failed error) error {
	different := false
	for _, r := range results {
		different = different || r.Different()
		if len(r.Hooks) > 0 && r.Different() {
			a.UI.Action("%s: the %s also runs the hooks %s", r.Owner, r.Step, joined(r.Hooks))
		}
		for _, warning := range r.Warnings {
			a.UI.Warning("%s", warning)
		}
		for _, c := range r.Changes {
			if c.Action == diff.Failed {
				a.UI.Failure("%s: %s", c.Object, redact.Text(c.Reason))
				failed = clierr.ErrReported
			}
			warnOfDangers(a, c)
		}
	}
	switch {
	case failed != nil:
		return failed
	case !different:
		a.UI.Success("no changes")
		return nil
	case !o.ExitCode:
		return nil
	}
	a.UI.Warning("there are changes: exiting with 1")
	return &clierr.ExitCodeError{Code: 1}
}

func joined(refs []diff.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return strings.Join(names, ", ")
}

// warnOfDangers says what of a change may be more than it looks like. That an
// object is deleted stands in the diff.
func warnOfDangers(a *app.App, c diff.Change) {
	c.Dangers = slices.DeleteFunc(slices.Clone(c.Dangers), func(d diff.Danger) bool { return d == diff.DangerPrune })
	if said := render.Warnings(c); len(said) > 0 {
		a.UI.Warning("%s %s", c.Object, strings.Join(said, " and "))
	}
}
