package diff

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/compare"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

func newHelmRelease(a *app.App) *cobra.Command {
	o := &compare.ReleaseOptions{Options: compare.Options{}}
	k, _ := controllers.FindKind("HelmRelease")
	cmd := &cobra.Command{
		Use:     "helmrelease [name]",
		Aliases: []string{"hr"},
		Short:   "Diff a HelmRelease against the cluster",
		Long: `Diff a HelmRelease against the cluster: list the objects that the next upgrade of
its release would create, change and remove, field by field. The chart is
rendered like helm-controller does, and the diff uses a server-side dry run of
each object.

helm-controller upgrades a release when its chart has another version, or when
its values, post-renderers or common metadata change. If none of them changed,
the diff shows drift from the deployed release. The controller corrects drift
only if spec.driftDetection.mode is enabled; otherwise there are no changes to
apply, and the objects that differ are listed as not corrected.

Without --chart, the diff uses the chart artifact of the source; if
--helmrelease-file sets another chart, that chart is fetched. Hooks are not part
of the release: they are listed, but not compared. Secret values are masked in
all objects.

The exit code is 0 if there are no changes, 1 if there are changes, and 2 if the
comparison failed or the controller would fail.`,
		Example: `  # Show the changes of the next reconciliation
  flux diff helmrelease my-app

  # Use a local chart and additional values
  flux diff helmrelease my-app --chart ./charts/my-app --values ./new-values.yaml

  # Show the changes of a HelmRelease file that may be new
  flux diff helmrelease my-app --helmrelease-file ./apps/my-app.yaml --ignore-not-found

  # Write a pull request comment without failing the pipeline
  flux diff helmrelease my-app --chart ./charts/my-app -o github --exit-code=false`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runHelmRelease(a, cmd, o, names) })
		},
	}
	fs := cmd.Flags()
	o.ChartOptions.Add(fs)
	o.Remote.Add(fs)
	fs.StringVar(&o.Chart, "path", "", "alias of --chart")
	fs.StringVar(&o.File, "helmrelease-file", "", "file with the HelmRelease to use instead of the live object, - for standard input")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "directories of sources, e.g. GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.IgnoreNotFound, "ignore-not-found", false, "treat a missing HelmRelease as new if a file is set, and as unchanged otherwise")
	o.AddCapabilities(fs)
	o.AddProvider(fs)
	addOutput(cmd, &o.Options)
	return cmd
}

func runHelmRelease(a *app.App, cmd *cobra.Command, o *compare.ReleaseOptions, names []string) (err error) {
	if len(names) != 1 {
		return hint.Errorf("flux diff helmrelease NAME", "one HelmRelease name is required")
	}
	if err := checkGate(cmd, &o.Options); err != nil {
		return err
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
	defer func() { err = errors.Join(err, planner.Charts.Close()) }()
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
	if err := printChanges(a, &o.Options, results); err != nil {
		return err
	}
	return conclude(a, &o.Options, results, nil)
}

// releaseToDiff returns the HelmRelease with its new spec, or nil if there is
// nothing to compare.
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
		if hr, err = desired.ManifestFromFile(ctx, a, o.File, wanted, namespace, name); err != nil {
			return nil, err
		}
	}
	return &diff.HelmRelease{Object: compare.WithStatus(hr, live), Live: live}, nil
}
