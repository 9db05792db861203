// Package diff implements the diff commands.
package diff

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/diff/artifact"
	"github.com/fluxkit/flux/cmd/flux/internal/diff/changes"
	"github.com/fluxkit/flux/cmd/flux/internal/diff/peers"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/compare"
	"github.com/fluxkit/flux/pkg/diff/revision"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// NewCommand returns the diff command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := command.ObjectGroup("diff", "Diff desired state against the cluster, or two revisions",
		artifact.NewCommand(a), artifact.NewGeneratorCommand(a), peers.NewCommand(a), newHelmRelease(a), newKustomization(a))
	cmd.ValidArgsFunction = complete.OfSubcommands(a)
	return addBase(a, cmd)
}

func newKustomization(a *app.App) *cobra.Command {
	o, several := &options{}, &kinds.Several{}
	k, _ := controllers.FindKind(controllers.Kustomization)
	cmd := &cobra.Command{
		Use:     "kustomization [name ...]",
		Aliases: []string{"ks"},
		Short:   "Diff a Kustomization against the cluster",
		Long: `Compare a Kustomization with the cluster: list the objects that it would create,
change, recreate and prune, field by field. Each object is sent to the API
server as a server-side apply dry run, as kustomize-controller applies it, so
that the result includes defaults, webhooks and the fields of other managers.

Selection:
  By default, the artifact of the source is compared, to show drift. --path
  compares a local directory, --revision or --branch another revision, which is
  fetched with the credentials of the source (its Secret, a GitHub App, or
  --provider), or read from a clone of the source in the current directory.
  --base compares with a revision instead of the cluster, without a dry run.

Output:
  The report includes objects that are deleted with a pruned owner and, with
  --recursive, those of ResourceSets. Secret values are masked. The cluster and
  the directory are not modified. Dry runs use the cluster in spec.kubeConfig,
  and impersonate the ServiceAccount if you have the permission.`,
		Example: `  # Show drift from the artifact of the source
  flux diff kustomization my-app

  # Show the changes of local files
  flux diff kustomization my-app --path ./apps/my-app

  # Show the changes of a branch or commit of the source's repository
  flux diff kustomization my-app --branch my-feature
  flux diff kustomization my-app --revision 5394cb7f48332b2de7c17dd8b8384bbc84b7e738

  # Show the changes between two revisions of the source
  flux diff kustomization my-app --base v1.0.0 --revision v1.1.0

  # Show the drift of several Kustomizations
  flux diff kustomization my-app my-api
  flux diff ks -A -l team=blue

  # Also diff nested Kustomizations and ResourceSets
  flux diff kustomization flux-system --path ./clusters/production --recursive

  # Also diff nested Kustomizations and HelmReleases
  flux diff kustomization flux-system --path ./clusters/production --recursive --with-helm

  # Write a pull request comment without failing the pipeline
  flux diff kustomization my-app --path ./apps/my-app -o github --exit-code=false`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runKustomization(a, cmd, o, several, names) })
		},
	}
	fs := cmd.Flags()
	o.Add(fs)
	several.Add(fs, "diff")
	buildflags.AddCapabilities(fs, &o.helm)
	fs.BoolVar(&o.withHelm, "with-helm", false, "also diff nested HelmReleases")
	fs.Lookup("path").Usage = "directory to compare (default: the artifact of the source)"
	addRevision(cmd, o)
	fs.StringVar(&o.base, "base", "", "revision of the source to compare with, instead of the cluster")
	complete.Revisions(cmd, "base")
	addFieldOwners(cmd, o)
	o.AddInputs(cmd)
	fs.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "treat a missing Kustomization as new with --kustomization-file, else as unchanged")
	o.add(cmd)
	return cmd
}

// runKustomization compares Kustomizations and, with --with-helm, the
// HelmReleases in their builds.
func runKustomization(a *app.App, cmd *cobra.Command, o *options, several *kinds.Several, names []string) error {
	k, _ := controllers.FindKind(controllers.Kustomization)
	if err := several.CheckLocal(cmd, k, names, kinds.Local{Path: o.Path, File: o.File, Recursive: o.Recursive}); err != nil {
		return err
	}
	if err := o.checkRevision(); err != nil {
		return err
	}
	if err := o.changes.Check(cmd); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if err := o.ReadLocal(ctx, a); err != nil {
		return err
	}
	comparer, err := o.comparer(a)
	if err != nil {
		return err
	}
	targets, err := several.Of(ctx, a, cmd, names, k)
	if err != nil {
		return err
	}
	if !o.progress {
		a.UI.NoProgress()
	}
	compared, failed := kinds.Collect(a, targets, func(t *kinds.Target) ([]*diff.Result, error) { return o.compare(ctx, a, comparer, *t) })
	results := slices.Concat(compared...)
	if len(results) == 0 {
		return failed // nil if there is nothing to compare
	}
	if err := o.changes.Print(a, results); err != nil {
		return err
	}
	return o.changes.Conclude(a, results, failed)
}

// compare compares one Kustomization. With --ignore-not-found, a missing object has no results.
func (o *options) compare(ctx context.Context, a *app.App, comparer *compare.Comparer, t kinds.Target) ([]*diff.Result, error) {
	line := a.UI.Progress(a.Now, "reading Kustomization %s", t.Name)
	defer line.Done()
	if o.base != "" {
		result, err := revision.OfSource(ctx, comparer, o.base, t.Namespace, t.Name)
		if err != nil {
			return nil, o.missing(a, err)
		}
		return []*diff.Result{result}, nil
	}
	plan, err := comparer.NewPlan(ctx, t.Namespace, t.Name)
	if err != nil {
		return nil, o.missing(a, err)
	}
	line.Set("building %s", controllers.VersionedIDOf(plan.Ks.Object))
	comparer.Announce("building %s", controllers.VersionedIDOf(plan.Ks.Object))
	built, childErr := plan.Run(ctx)
	if built == nil {
		return nil, desired.ExplainBuild(childErr)
	}
	line.Set("comparing with the cluster")
	comparer.Announce("comparing %s with the cluster", output.Amount(len(built.Objects), "object"))
	results, err := plan.Compare(ctx, built)
	if err != nil {
		return nil, err
	}
	failed := buildflags.ReportChildren(a, childErr)
	if o.withHelm {
		more, failures, err := plan.Releases(ctx, &o.helm, built, results)
		if err != nil {
			return nil, err
		}
		results = append(results, more...)
		failed = cmp.Or(app.ReportAll(a, failures, compare.ExplainReleaseInBuild), failed)
	}
	return results, failed
}

// DangersTopic returns the help text on dangers and their rules.
func DangersTopic() string { return changes.Topic() }
