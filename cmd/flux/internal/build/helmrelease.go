package build

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

func newHelmRelease(a *app.App) *cobra.Command {
	o := &options{format: "yaml"}
	k, _ := controllers.FindKind(controllers.HelmRelease)
	cmd := &cobra.Command{
		Use:     "helmrelease [name]",
		Aliases: []string{"hr"},
		Short:   "Render the objects that a HelmRelease installs",
		Long: `Render the objects that a HelmRelease installs, like helm-controller: its chart
with spec.valuesFrom and spec.values, patched by spec.postRenderers, with owner
labels. The chart is rendered for the Kubernetes version, the APIs and the
objects of the cluster.

Sources:
  The chart comes from the source of the HelmRelease: a Helm or OCI repository,
  or for a GitRepository the work tree of the current directory or a directory
  in --local-sources. Charts are cached in the user's cache directory.
  With --dry-run, no cluster is accessed: the HelmRelease is read from
  --helmrelease-file or the work tree, its source, ConfigMaps and Secrets from
  the work tree. Lookups in charts return no objects.`,
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
	buildflags.AddChart(fs, &o.chart)
	buildflags.AddHelm(fs, &o.helm)
	o.AddRelease(fs)
	fs.BoolVar(&o.DryRun, "dry-run", false, "build without cluster access, from the files in the work tree")
	command.AddOutput(fs, &o.format, "output format", "yaml", "json")
	o.secrets.Add(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	return cmd
}

func runHelmRelease(a *app.App, cmd *cobra.Command, o *options, names []string) error {
	if err := o.check(cmd, controllers.HelmRelease, names); err != nil {
		return err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	builder, err := o.Builder(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	result, err := builder.RenderRelease(ctx, &o.helm, &o.chart, namespace, names[0])
	if err != nil {
		return err
	}
	return printObjects(a, o, &build.Result{Objects: o.helm.Shown(result)})
}
