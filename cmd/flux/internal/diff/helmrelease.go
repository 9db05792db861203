package diff

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/compare"
)

func newHelmRelease(a *app.App) *cobra.Command {
	o := &options{}
	k, _ := controllers.FindKind(controllers.HelmRelease)
	cmd := &cobra.Command{
		Use:     "helmrelease [name]",
		Aliases: []string{"hr"},
		Short:   "Diff a HelmRelease against the cluster",
		Long: `Compare a HelmRelease with the cluster: list the objects that the next upgrade
would create, change and remove, field by field. The chart is rendered as in
helm-controller, and each object is sent to the API server as a dry run.

Drift:
  helm-controller upgrades a release if the chart version, the values, the
  post-renderers or the common metadata change. Otherwise the diff shows drift.
  The controller corrects drift only if spec.driftDetection.mode is enabled;
  otherwise, objects with drift are listed as not corrected, not as changes.

Charts:
  The chart is the artifact of the source, the chart of the HelmRelease in
  --helmrelease-file, or --chart. Hooks are not part of the release: they are
  listed but not compared. Secret values are masked.`,
		Example: `  # Show the changes of the next reconciliation
  flux diff helmrelease my-app

  # Use a local chart and additional values
  flux diff helmrelease my-app --chart ./charts/my-app --values ./new-values.yaml

  # Diff a HelmRelease file, even if the HelmRelease does not exist yet
  flux diff helmrelease my-app --helmrelease-file ./apps/my-app.yaml --ignore-not-found

  # Write a pull request comment without failing the pipeline
  flux diff helmrelease my-app --chart ./charts/my-app -o github --exit-code=false`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runHelmRelease(a, cmd, o, names) })
		},
	}
	fs := cmd.Flags()
	buildflags.AddChart(fs, &o.chart)
	o.AddRelease(fs)
	fs.StringVar(&o.chart.Chart, "path", "", "alias of --chart")
	addFieldOwners(cmd, o)
	fs.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "treat a missing HelmRelease as new with --helmrelease-file, else as unchanged")
	buildflags.AddCapabilities(fs, &o.helm)
	o.add(cmd)
	return cmd
}

func runHelmRelease(a *app.App, cmd *cobra.Command, o *options, names []string) error {
	if len(names) != 1 {
		return hint.Errorf("flux diff helmrelease NAME", "one HelmRelease name is required")
	}
	if err := o.changes.Check(cmd); err != nil {
		return err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	comparer, err := o.comparer(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	h, err := comparer.Release(ctx, namespace, names[0])
	if err != nil {
		return o.missing(a, err)
	}
	planner, err := comparer.NewReleasePlanner(ctx, &o.helm)
	if err != nil {
		return err
	}
	if err := o.chart.Override(planner.Options); err != nil {
		return err
	}
	h.Forced = o.chart.Chart != "" || len(o.chart.Values) > 0
	comparer.Announce("rendering %s", controllers.VersionedIDOf(h.Object.Object))
	plan, err := planner.Plan(ctx, *h)
	if err != nil {
		return compare.ExplainRelease(err)
	}
	comparer.Announce("comparing %s with the cluster (%s, %s)", output.Amount(len(plan.Build.Objects)+len(plan.Release.Ahead), "object"), plan.Release.Step, plan.Revision)
	result, err := planner.Clusters.Compare(ctx, plan)
	if err != nil {
		return compare.ExplainRelease(err)
	}
	results := []*diff.Result{result}
	if err := o.changes.Print(a, results); err != nil {
		return err
	}
	return o.changes.Conclude(a, results, nil)
}
