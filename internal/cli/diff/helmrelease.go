package diff

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/compare"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

func newHelmRelease(a *app.App) *cobra.Command {
	o := &compare.ReleaseOptions{Options: compare.Options{Format: "human"}}
	k, _ := controllers.FindKind("HelmRelease")
	cmd := &cobra.Command{
		Use:     "helmrelease [name]",
		Aliases: []string{"hr"},
		Short:   "Show what a HelmRelease would change on the cluster",
		Long: `Show what a HelmRelease would change on the cluster: what the next upgrade of
its release would create, change and remove, field by field. The chart is
rendered as helm-controller does it, and the API server is asked for a dry run
of every object.

helm-controller upgrades a release when its chart has another version, or when
its values, post-renderers or common metadata change. Where nothing of that has
happened, drift from the deployed release is shown: the controller corrects it
if spec.driftDetection.mode is enabled, and leaves it so if not.

Without --chart, the chart is the one that the source has fetched; where
--helmrelease-file asks for another, it is fetched. Hooks are no objects of a
release: they are named, and not compared. Secret values are not shown, wherever
in the objects they went.

It exits with 0 when nothing would change, 1 when something would, and 2 when
that could not be found out or the controller would fail.`,
		Example: `  # What will the next reconciliation do?
  flux diff helmrelease my-app

  # With the chart that is being worked on, and other values
  flux diff helmrelease my-app --chart ./charts/my-app --values ./new-values.yaml

  # What would this HelmRelease change, which may not be on the cluster yet?
  flux diff helmrelease my-app --helmrelease-file ./apps/my-app.yaml --ignore-not-found

  # A comment for a pull request, which does not fail the pipeline
  flux diff helmrelease my-app --chart ./charts/my-app -o github --exit-code=false`,
		ValidArgsFunction: complete.Names(a, k),
		RunE:              func(cmd *cobra.Command, names []string) error { return runHelmRelease(a, cmd, o, names) },
	}
	fs := cmd.Flags()
	o.ChartOptions.Add(fs)
	fs.StringVar(&o.Chart, "path", "", "the same as --chart")
	fs.StringVar(&o.File, "helmrelease-file", "", "a file with the HelmRelease, instead of the cluster's; - for standard input")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "the folders of sources, such as GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.IgnoreNotFound, "ignore-not-found", false, "take a HelmRelease that is not on the cluster for one to be created, or with no file for nothing to do")
	o.AddCapabilities(fs)
	addOutput(&o.Options, fs)
	return cmd
}

func runHelmRelease(a *app.App, cmd *cobra.Command, o *compare.ReleaseOptions, names []string) (err error) {
	if len(names) != 1 {
		return clierr.WithHint("flux diff helmrelease NAME", "one HelmRelease name is required")
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	h, err := releaseToDiff(ctx, a, cmd, o, names[0])
	if err != nil || h == nil {
		return err
	}
	planner, err := compare.NewReleasePlanner(ctx, a, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, planner.Program.Close()) }()
	if err := o.Override(planner.Options); err != nil {
		return err
	}
	h.Forced = o.Chart != "" || len(o.Values) > 0
	compare.Announce(a, &o.Options, "rendering %s", diff.RefOf(h.Object))
	plan, err := planner.Plan(ctx, *h)
	if err != nil {
		return compare.ExplainRelease(err)
	}
	compare.Announce(a, &o.Options, "comparing %d objects with the cluster (%s, %s)", len(plan.Build.Objects)+len(plan.Release.Ahead), plan.Release.Step, plan.Revision)
	result, err := planner.Clusters.Compare(ctx, plan)
	if err != nil {
		return compare.ExplainRelease(err)
	}
	results := []*diff.Result{result}
	if err := printChanges(a, o.Format, results); err != nil {
		return err
	}
	return conclude(a, &o.Options, results, nil)
}

// releaseToDiff is the HelmRelease with the spec that is to hold, nil where
// there is nothing to do.
func releaseToDiff(ctx context.Context, a *app.App, cmd *cobra.Command, o *compare.ReleaseOptions, name string) (*diff.HelmRelease, error) {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return nil, err
	}
	live, err := desired.LiveObject(ctx, a, "HelmRelease", namespace, name)
	if proceed, err := compare.WithoutLive(a, &o.Options, err); !proceed {
		return nil, err
	}
	hr := live
	if o.File != "" {
		wanted := desired.Wanted{Kind: "HelmRelease", Flag: "--helmrelease-file", Is: build.IsHelmRelease}
		if hr, err = desired.ManifestIn(a, o.File, wanted, namespace, name); err != nil {
			return nil, err
		}
	}
	return &diff.HelmRelease{Object: compare.WithStatus(hr, live), Live: live}, nil
}
