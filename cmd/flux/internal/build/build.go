// Package build implements the build commands.
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// NewCommand returns the build command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := command.ObjectGroup("build", "Build the manifests that Flux would apply",
		newArtifact(a), newGenerator(a), newHelmRelease(a), newKustomization(a))
	cmd.ValidArgsFunction = complete.OfSubcommands(a)
	return cmd
}

// options holds the flag values.
type options struct {
	buildflags.Options
	helm    desired.HelmOptions
	chart   desired.ChartOptions
	format  string
	secrets command.SecretDisplay
	several kinds.Several
}

// check returns an error for flags that contradict each other or for a missing name.
func (o *options) check(cmd *cobra.Command, kind string, names []string) error {
	if len(names) != 1 {
		return hint.Errorf(cmd.CommandPath()+" NAME", "one %s name is required", kind)
	}
	return o.secrets.Check()
}

func newKustomization(a *app.App) *cobra.Command {
	o := &options{format: "yaml"}
	withHelm := false
	k, _ := controllers.FindKind(controllers.Kustomization)
	cmd := &cobra.Command{
		Use:     "kustomization [name ...]",
		Aliases: []string{"ks"},
		Short:   "Render the objects that a Kustomization applies",
		Long: `Render the objects that a Kustomization applies, like kustomize-controller: its
spec (patches, images, components, targetNamespace, ...) is applied to the
directory, variables are substituted, and owner labels are added. The build runs
in memory and does not modify the directory.

Sources:
  Without --path, spec.path in the Git work tree of the current directory is
  built. With --recursive, Kustomizations with another source are built from a
  directory in --local-sources or the artifact in source-controller; an
  OCIRepository that is not on the cluster is pulled from its registry.
  With --dry-run, no cluster is accessed: the Kustomization is read from
  --kustomization-file or the work tree, its ConfigMaps and Secrets from the
  work tree, and other branches and tags of the repository from the clone.

Secrets:
  On a terminal, the values of Secrets and of variables from Secrets are masked
  unless --show-secrets is set. Files and pipes contain the values unless
  --mask-secrets is set. SOPS-encrypted values are always masked.`,
		Example: `  # Build the local files
  flux build kustomization my-app

  # Build another directory
  flux build kustomization my-app --path ./apps/my-app

  # Build without cluster access
  flux build kustomization my-app --path ./apps/my-app \
    --kustomization-file ./clusters/production/my-app.yaml --dry-run

  # Also build nested Kustomizations, recursively
  flux build kustomization flux-system --path ./clusters/production --recursive \
    --local-sources GitRepository/flux-system/flux-system=./

  # Also build nested Kustomizations and HelmReleases
  flux build kustomization flux-system --recursive --with-helm

  # Build several Kustomizations
  flux build kustomization my-app my-api
  flux build ks -A -l team=blue

  # Override substitution variables
  flux build kustomization my-app --set region=eu --vars-file ./staging.env`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return runKustomization(a, cmd, o, withHelm, names) })
		},
	}
	fs := cmd.Flags()
	o.Add(fs)
	o.AddLocal(cmd)
	buildflags.AddHelm(fs, &o.helm)
	fs.BoolVar(&withHelm, "with-helm", false, "also render nested HelmReleases")
	fs.BoolVar(&o.DryRun, "dry-run", false, "build without cluster access, from the files in the work tree")
	o.several.Add(fs, "build")
	command.AddOutput(fs, &o.format, "output format", "yaml", "json")
	o.secrets.Add(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	return cmd
}

// runKustomization builds Kustomizations and, with --with-helm, renders their HelmReleases.
func runKustomization(a *app.App, cmd *cobra.Command, o *options, withHelm bool, names []string) error {
	k, _ := controllers.FindKind(controllers.Kustomization)
	if err := o.several.CheckLocal(cmd, k, names, kinds.Local{Path: o.Path, File: o.File, Recursive: o.Recursive, DryRun: o.DryRun}); err != nil {
		return err
	}
	if err := o.secrets.Check(); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if err := o.ReadLocal(ctx, a); err != nil {
		return err
	}
	builder, err := o.Builder(a)
	if err != nil {
		return err
	}
	targets, err := o.several.Of(ctx, a, cmd, names, k)
	if err != nil {
		return err
	}
	line := a.UI.Progress(a.Now, "building")
	results, failed := kinds.Collect(a, targets, func(t *kinds.Target) (*build.Result, error) { return o.build(ctx, a, builder, withHelm, *t) })
	line.Done()
	var all build.Result
	for i, r := range results {
		if r != nil && !slices.ContainsFunc(results[:i], owns(targets[i])) && !isNested(results, targets, i) {
			all.Add(r)
		}
	}
	if len(all.Objects) == 0 && failed != nil && !errors.Is(failed, clierr.ErrReported) {
		return failed
	}
	return errors.Join(printObjects(a, o, &all), failed, context.Cause(ctx))
}

// owns returns a function that reports whether a result has objects of a target.
func owns(t kinds.Target) func(*build.Result) bool {
	id := t.Kind.ID(t.Namespace, t.Name)
	return func(r *build.Result) bool {
		return r != nil && slices.ContainsFunc(r.Objects, func(o build.Object) bool { return o.Owner == id })
	}
}

// isNested reports whether a later target already includes the objects of a target, because --recursive builds nested
// Kustomizations. Of targets that apply each other, only the first one is printed.
func isNested(results []*build.Result, targets []kinds.Target, i int) bool {
	for j := i + 1; j < len(results); j++ {
		if owns(targets[i])(results[j]) && !owns(targets[j])(results[i]) {
			return true
		}
	}
	return false
}

// build builds one Kustomization. It reports the errors of its children.
func (o *options) build(ctx context.Context, a *app.App, builder *desired.Builder, withHelm bool, t kinds.Target) (*build.Result, error) {
	plan, err := builder.NewPlan(ctx, t.Namespace, t.Name)
	if err != nil {
		return nil, err
	}
	result, err := plan.Run(ctx)
	if result == nil {
		return nil, desired.ExplainBuild(err)
	}
	failed := buildflags.ReportChildren(a, err)
	if withHelm {
		failures, err := builder.RenderReleases(ctx, &o.helm, plan, result)
		failed = cmp.Or(err, app.ReportAll(a, failures, desired.ExplainHelm), failed)
	}
	return result, failed
}

// printObjects prints objects as manifests. Secret values are masked on
// request; SOPS-encrypted values are always masked.
func printObjects(a *app.App, o *options, result *build.Result) error {
	items, masked := make([]unstructured.Unstructured, len(result.Objects)), 0
	for i, object := range result.Objects {
		shown, n := object.Unstructured, 0
		if o.secrets.Masks(a.Out) {
			shown, n = build.WithoutSecrets(object)
		} else {
			shown, _ = build.Masked(shown)
		}
		items[i], masked = *shown, masked+n
	}
	if masked > 0 {
		a.UI.Warning("secret values are masked (%d): print them with --show-secrets", masked)
	}
	if o.format == "json" {
		return output.PrintObjects(a.Output(o.format), o.format, items, false)
	}
	var b strings.Builder
	for _, item := range items {
		text, err := output.Manifest(item.Object)
		if err != nil {
			return fmt.Errorf("printing %s %q: %w", item.GetKind(), item.GetName(), err)
		}
		b.Write(text)
		b.WriteString("---\n")
	}
	return a.Document(b.String())
}
