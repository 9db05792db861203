package build

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// releaseOptions are the flags of build helmrelease.
type releaseOptions struct {
	desired.BuildOptions
	desired.HelmOptions
	desired.ChartOptions
}

func newHelmRelease(a *app.App) *cobra.Command {
	o := &releaseOptions{BuildOptions: desired.BuildOptions{Format: "yaml"}}
	k, _ := controllers.FindKind("HelmRelease")
	cmd := &cobra.Command{
		Use:     "helmrelease [name]",
		Aliases: []string{"hr"},
		Short:   "Render the objects that a HelmRelease installs",
		Long: `Render the objects that a HelmRelease installs, like helm-controller: its chart
with spec.valuesFrom and spec.values, patched by spec.postRenderers, with owner labels.

The chart comes from the source of the HelmRelease: a Helm or OCI repository,
or, for a Git repository, the work tree of the current directory or a directory
set with --local-sources. Charts are cached in the user's cache directory.
Charts use the version, the APIs and the objects of the cluster.

With --dry-run, no cluster is accessed: the HelmRelease is read from
--helmrelease-file, or the work tree, and its source, ConfigMaps
and Secrets are read from the work tree; lookups in charts return no objects.`,
		Example: `  # Render the chart with the values of the HelmRelease
  flux build helmrelease my-app

  # Render a local chart with additional values
  flux build helmrelease my-app --chart ./charts/my-app --values ./test-values.yaml

  # Render without cluster access
  flux build helmrelease my-app --helmrelease-file ./apps/my-app.yaml --dry-run --kube-version 1.35.0`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runHelmRelease(a, cmd, o, names) })
		},
	}
	fs := cmd.Flags()
	o.ChartOptions.Add(fs)
	fs.StringVar(&o.File, "helmrelease-file", "", "file with the HelmRelease to use instead of the live object, - for standard input")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "directories of sources, e.g. GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.DryRun, "dry-run", false, "build without cluster access, from the files in the work tree")
	fs.VarP(command.Choice{Value: &o.Format, Allowed: []string{"yaml", "json"}}, "output", "o", "output format: yaml or json")
	o.AddProvider(fs)
	o.Secrets.Add(fs)
	o.HelmOptions.Add(fs)
	o.Remote.Add(fs)
	return cmd
}

func runHelmRelease(a *app.App, cmd *cobra.Command, o *releaseOptions, names []string) (err error) {
	if len(names) != 1 {
		return hint.Errorf("flux build helmrelease NAME", "one HelmRelease name is required")
	}
	if err := o.Secrets.Check(); err != nil {
		return err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	work, err := workspace.Around(".")
	if err != nil {
		return err
	}
	wanted := desired.Wanted{Kind: "HelmRelease", Flag: "--helmrelease-file", Is: build.IsHelmRelease}
	hr, err := desired.ObjectFor(ctx, a, &o.BuildOptions, wanted, work, namespace, names[0])
	if err != nil {
		return err
	}
	options, program, err := desired.HelmBuild(ctx, a, &o.BuildOptions, &o.HelmOptions, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if err := o.Override(options); err != nil {
		return err
	}
	options.Revision = deployedRevision(hr)
	result, err := build.HelmRelease(ctx, hr, *options)
	if err != nil {
		return desired.ExplainHelm(err)
	}
	return printObjects(a, &o.BuildOptions, &build.Result{Objects: o.Shown(result)})
}

// deployedRevision returns the revision of the deployed release, or 0 if there
// is none.
func deployedRevision(hr *unstructured.Unstructured) int {
	history, _, _ := unstructured.NestedSlice(hr.Object, "status", "history")
	if len(history) == 0 {
		return 0
	}
	last, _ := history[0].(map[string]any)
	version, _ := last["version"].(int64)
	return int(version)
}

// addReleases renders the HelmReleases of a build concurrently and appends
// their objects in order. It reports the errors of HelmReleases that failed to
// render.
func addReleases(ctx context.Context, a *app.App, o *desired.BuildOptions, h *desired.HelmOptions, plan *desired.Plan, result *build.Result) (err error) {
	var releases []*unstructured.Unstructured
	for _, object := range result.Objects {
		if build.IsHelmRelease(object.Unstructured) {
			releases = append(releases, object.Unstructured)
		}
	}
	if len(releases) == 0 {
		return nil
	}
	options, program, err := desired.HelmBuild(ctx, a, o, h, plan.Work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if options.Sources, err = desired.SourcesWithRemotes(a, o, plan.Work, plan.Ks); err != nil {
		return err
	}
	desired.PreferBuilt(options, result)
	results, failures := make([]*build.HelmResult, len(releases)), make([]error, len(releases))
	slots := make(chan struct{}, app.Concurrency)
	var wg sync.WaitGroup
	for i, hr := range releases {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i], failures[i] = build.HelmRelease(ctx, hr, *options)
		})
	}
	wg.Wait()
	for i, rendered := range results {
		if failures[i] != nil {
			a.Report(desired.ExplainHelm(failures[i]))
			err = clierr.ErrReported
			continue
		}
		result.Objects = append(result.Objects, h.Shown(rendered)...)
	}
	return err
}
