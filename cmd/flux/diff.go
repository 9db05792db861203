package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

func newDiff(a *app) *cobra.Command {
	return addBase(a, group("diff", "Diff desired state against the cluster, or two revisions",
		newDiffArtifact(a), newDiffHelmRelease(a), newDiffKustomization(a)))
}

// diffOptions are the flags of diff kustomization.
type diffOptions struct {
	buildOptions
	ignoreNotFound bool
	progress       bool
	exitCode       bool
	format         string
	// revision and branch are what of the source is compared, "" for what it has.
	revision, branch string
}

// diffFormats are the values of -o.
var diffFormats = []string{"human", "unified", "json", "github", "gitlab", "html"}

func newDiffKustomization(a *app) *cobra.Command {
	o, h := &diffOptions{format: "human"}, &helmOptions{}
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
		ValidArgsFunction: a.completeNames(k),
		RunE: func(cmd *cobra.Command, names []string) error {
			if withHelm {
				return a.diffKustomization(cmd, o, h, names)
			}
			return a.diffKustomization(cmd, o, nil, names)
		},
	}
	fs := cmd.Flags()
	o.add(fs)
	h.addCapabilities(fs)
	fs.BoolVar(&withHelm, "with-helm", false, "compare what the HelmReleases do that it brings, too")
	fs.Lookup("path").Usage = "the folder to compare (default: what the source has fetched)"
	a.addRevision(cmd, o)
	fs.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "take a Kustomization that is not on the cluster for one to be created, or with no file for nothing to do")
	o.addOutput(fs)
	return cmd
}

// addOutput adds the flags for how a difference is shown.
func (o *diffOptions) addOutput(fs *pflag.FlagSet) {
	fs.BoolVar(&o.progress, "progress-bar", true, "say on standard error what is being done")
	fs.BoolVar(&o.exitCode, "exit-code", true, "exit with 1 when something would change")
	fs.VarP(choice{&o.format, diffFormats}, "output", "o", "print as human, unified, json, github, gitlab or html")
}

// diffKustomization also compares what HelmReleases do where h is given.
func (a *app) diffKustomization(cmd *cobra.Command, o *diffOptions, h *helmOptions, names []string) error {
	if len(names) != 1 {
		return hinted("flux diff kustomization NAME", "one Kustomization name is required")
	}
	if err := o.checkRevision(); err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	if !o.progress {
		a.ui.NoProgress()
	}
	line := a.ui.Progress(a.now, "reading Kustomization %s", names[0])
	defer line.Done()
	plan, err := a.planDiff(ctx, cmd, o, names[0])
	if err != nil || plan == nil {
		return err
	}
	line.Say("building %s", diff.RefOf(plan.ks))
	a.progress(o, "building %s", diff.RefOf(plan.ks))
	built, childErr := plan.run(ctx)
	if built == nil {
		return explainBuild(childErr)
	}
	line.Say("comparing with the cluster")
	a.progress(o, "comparing %d objects with the cluster", len(built.Objects))
	results, err := a.compare(ctx, plan, built)
	if apierrors.IsForbidden(err) {
		return hinted("diff asks the API server for dry runs, which need the permissions to get, list and patch what is compared", "%w", err)
	}
	if err != nil {
		return err
	}
	failed := a.reportChildren(childErr)
	if h != nil {
		more, err := a.compareReleases(ctx, o, h, plan, built, results)
		if err != nil && !errors.Is(err, errReported) {
			return err
		}
		if results = append(results, more...); err != nil {
			failed = err
		}
	}
	line.Done()
	if err := a.printDiff(o.format, results); err != nil {
		return err
	}
	return a.concludeDiff(o, results, failed)
}

func (a *app) progress(o *diffOptions, format string, args ...any) {
	if o.progress {
		a.ui.Action(format, args...)
	}
}

// gitlabMax is how many characters GitLab takes in a comment.
const gitlabMax = 1_000_000

func (a *app) printDiff(format string, results []*diff.Result) error {
	switch format {
	case "json":
		return render.JSON(a.answer(format), results)
	case "unified":
		return render.Unified(a.out, results, a.diffStyle())
	case "github":
		return render.Markdown(a.out, results, render.CommentMax)
	case "gitlab":
		return render.Markdown(a.out, results, gitlabMax)
	case "html":
		return render.HTML(a.out, results)
	default:
		return render.Human(a.out, results, a.diffStyle())
	}
}

// diffStyle is in colour on a terminal.
func (a *app) diffStyle() render.Style {
	if !ui.IsTerminal(a.out) || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb" {
		return render.Style{}
	}
	hues := map[diff.Op]color.Attribute{diff.Added: color.FgGreen, diff.Removed: color.FgRed, diff.Replaced: color.FgYellow, "": color.Bold}
	return render.Style{Paint: func(op diff.Op, text string) string {
		c := color.New(hues[op])
		c.EnableColor()
		return c.Sprint(text)
	}}
}

// concludeDiff tells what went wrong and what is dangerous, and how it ends.
func (a *app) concludeDiff(o *diffOptions, results []*diff.Result, failed error) error {
	different := false
	for _, r := range results {
		different = different || r.Different()
		if len(r.Hooks) > 0 && r.Different() {
			a.ui.Action("%s: the %s also runs the hooks %s", r.Owner, r.Step, joined(r.Hooks))
		}
		for _, warning := range r.Warnings {
			a.ui.Warning("%s", warning)
		}
		for _, c := range r.Changes {
			if c.Action == diff.Failed {
				a.ui.Failure("%s: %s", c.Object, redact.Text(c.Reason))
				failed = errReported
			}
			a.warnOfDangers(c)
		}
	}
	switch {
	case failed != nil:
		return failed
	case !different:
		a.ui.Success("no changes")
		return nil
	case !o.exitCode:
		return nil
	}
	a.ui.Warning("there are changes: exiting with 1")
	return &exitCodeError{1}
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
func (a *app) warnOfDangers(c diff.Change) {
	c.Dangers = slices.DeleteFunc(slices.Clone(c.Dangers), func(d diff.Danger) bool { return d == diff.DangerPrune })
	if said := render.Warnings(c); len(said) > 0 {
		a.ui.Warning("%s %s", c.Object, strings.Join(said, " and "))
	}
}
