package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// releaseDiffOptions are the flags of diff helmrelease.
type releaseDiffOptions struct {
	diffOptions
	helmOptions
	chartOptions
}

func newDiffHelmRelease(a *app) *cobra.Command {
	o := &releaseDiffOptions{diffOptions: diffOptions{format: "human"}}
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
		ValidArgsFunction: a.completeNames(k),
		RunE:              func(cmd *cobra.Command, names []string) error { return a.diffHelmRelease(cmd, o, names) },
	}
	fs := cmd.Flags()
	o.chartOptions.add(fs)
	fs.StringVar(&o.chart, "path", "", "the same as --chart")
	fs.StringVar(&o.file, "helmrelease-file", "", "a file with the HelmRelease, instead of the cluster's; - for standard input")
	fs.StringToStringVar(&o.sources, "local-sources", nil, "the folders of sources, such as GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "take a HelmRelease that is not on the cluster for one to be created, or with no file for nothing to do")
	o.addCapabilities(fs)
	o.addOutput(fs)
	return cmd
}

func (a *app) diffHelmRelease(cmd *cobra.Command, o *releaseDiffOptions, names []string) (err error) {
	if len(names) != 1 {
		return hinted("flux diff helmrelease NAME", "one HelmRelease name is required")
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	h, err := a.releaseToDiff(ctx, cmd, o, names[0])
	if err != nil || h == nil {
		return err
	}
	planner, err := a.newReleasePlanner(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, planner.program.Close()) }()
	if err := o.override(planner.options); err != nil {
		return err
	}
	h.Forced = o.chart != "" || len(o.values) > 0
	a.progress(&o.diffOptions, "rendering %s", diff.RefOf(h.Object))
	plan, err := planner.plan(ctx, *h)
	if err != nil {
		return explainDiff(err)
	}
	a.progress(&o.diffOptions, "comparing %d objects with the cluster (%s, %s)", len(plan.Build.Objects)+len(plan.Release.Ahead), plan.Release.Step, plan.Revision)
	result, err := planner.clusters.compare(ctx, plan)
	if err != nil {
		return explainDiff(err)
	}
	results := []*diff.Result{result}
	if err := a.printDiff(o.format, results); err != nil {
		return err
	}
	return a.concludeDiff(&o.diffOptions, results, nil)
}

// releaseToDiff is the HelmRelease with the spec that is to hold, nil where
// there is nothing to do.
func (a *app) releaseToDiff(ctx context.Context, cmd *cobra.Command, o *releaseDiffOptions, name string) (*diff.HelmRelease, error) {
	namespace, err := a.namespace(cmd)
	if err != nil {
		return nil, err
	}
	live, err := a.liveObject(ctx, "HelmRelease", namespace, name)
	if proceed, err := a.withoutLive(&o.diffOptions, err); !proceed {
		return nil, err
	}
	hr := live
	if o.file != "" {
		wanted := manifestWanted{"HelmRelease", "--helmrelease-file", build.IsHelmRelease}
		if hr, err = a.manifestIn(o.file, wanted, namespace, name); err != nil {
			return nil, err
		}
	}
	return &diff.HelmRelease{Object: withStatus(hr, live), Live: live}, nil
}

// explainDiff adds the way out to what keeps objects from being compared.
func explainDiff(err error) error {
	var values *build.VariablesError
	if apierrors.IsForbidden(err) && errors.As(err, &values) {
		return hinted("a HelmRelease is rendered with your own permissions, which have to include what its values come from", "%w", err)
	}
	if apierrors.IsForbidden(err) {
		return hinted("diff asks the API server for dry runs, which need the permissions to get, list and patch what is compared", "%w", err)
	}
	return explainHelm(err)
}
