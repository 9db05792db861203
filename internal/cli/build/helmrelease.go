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
		Short:   "Render what a HelmRelease would install",
		Long: `Render what a HelmRelease would install, as helm-controller does it: its chart
with spec.valuesFrom and spec.values, patched by spec.postRenderers, labelled.

The chart comes from where the HelmRelease says: a Helm repository, a registry,
or, in a Git repository, the work tree around the current folder or a folder
named by --local-sources. What is fetched is kept in the user's cache folder.
Charts see the version and the APIs of the cluster, and look up its objects.

With --dry-run, no cluster is asked: the HelmRelease is read from
--helmrelease-file, or found in the work tree, as are its source, ConfigMaps
and Secrets; charts that look objects up find none.`,
		Example: `  # What the chart would become on the cluster
  flux build helmrelease my-app

  # The same with a chart that is being worked on, and other values
  flux build helmrelease my-app --chart ./charts/my-app --values ./test-values.yaml

  # Without a cluster
  flux build helmrelease my-app --helmrelease-file ./apps/my-app.yaml --dry-run --kube-version 1.35.0`,
		ValidArgsFunction: complete.Names(a, k),
		RunE:              func(cmd *cobra.Command, names []string) error { return runHelmRelease(a, cmd, o, names) },
	}
	fs := cmd.Flags()
	o.ChartOptions.Add(fs)
	fs.StringVar(&o.File, "helmrelease-file", "", "a file with the HelmRelease, instead of the cluster's; - for standard input")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "the folders of sources, such as GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.DryRun, "dry-run", false, "ask no cluster: what the build needs is taken from the work tree")
	fs.VarP(command.Choice{Value: &o.Format, Allowed: []string{"yaml", "json"}}, "output", "o", "print yaml or json")
	o.Secrets.Add(fs)
	o.HelmOptions.Add(fs)
	return cmd
}

func runHelmRelease(a *app.App, cmd *cobra.Command, o *releaseOptions, names []string) (err error) {
	if len(names) != 1 {
		return clierr.WithHint("flux build helmrelease NAME", "one HelmRelease name is required")
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
	work, err := desired.WorkTreeAround(".")
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

// deployedRevision is the number of the release that is there, 0 where none is.
func deployedRevision(hr *unstructured.Unstructured) int {
	history, _, _ := unstructured.NestedSlice(hr.Object, "status", "history")
	if len(history) == 0 {
		return 0
	}
	last, _ := history[0].(map[string]any)
	version, _ := last["version"].(int64)
	return int(version)
}

// addReleases renders the HelmReleases of a build, several at a time, and puts
// what they install behind it, in their order. What cannot be rendered has
// been reported.
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
	if options.Sources, err = desired.TreesOf(a, o, plan.Work, plan.Ks); err != nil {
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
