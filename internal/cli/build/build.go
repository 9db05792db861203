// Package build has the commands below build.
package build

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewCommand returns the command build.
func NewCommand(a *app.App) *cobra.Command {
	return command.Group("build", "Build the manifests that Flux would apply",
		newArtifact(a), newHelmRelease(a), newKustomization(a))
}

func newKustomization(a *app.App) *cobra.Command {
	o, h := &desired.BuildOptions{Format: "yaml"}, &desired.HelmOptions{}
	withHelm := false
	k, _ := controllers.FindKind("Kustomization")
	cmd := &cobra.Command{
		Use:     "kustomization [name]",
		Aliases: []string{"ks"},
		Short:   "Render what a Kustomization would apply",
		Long: `Render what a Kustomization would apply, as kustomize-controller does it:
its spec (patches, images, components, targetNamespace, ...) is laid over the
folder, variables are substituted, and the objects are labelled.

All of it happens in memory: nothing is written to the folder.

On a terminal the values of Secrets, and what was substituted from them, are
masked; --show-secrets prints them. In a pipe or a file they are printed, unless
--mask-secrets is given. What is encrypted with SOPS is always masked.

Without --path, the folder is spec.path in the Git work tree around the current
folder. With --dry-run, no cluster is asked: the Kustomization is read from
--kustomization-file, or found in the work tree, as are the ConfigMaps and
Secrets whose variables it substitutes.

With --recursive, children that have another source are built from what
source-controller has of it, unless --local-sources names a folder; an
OCIRepository that is not on the cluster is fetched from its registry.`,
		Example: `  # What the files here would become on the cluster
  flux build kustomization my-app

  # The same of another folder
  flux build kustomization my-app --path ./apps/my-app

  # Without a cluster
  flux build kustomization my-app --path ./apps/my-app \
    --kustomization-file ./clusters/production/my-app.yaml --dry-run

  # With the Kustomizations that it brings, theirs, and so on
  flux build kustomization flux-system --path ./clusters/production --recursive \
    --local-sources GitRepository/flux-system/flux-system=./

  # Down to what its HelmReleases install
  flux build kustomization flux-system --recursive --with-helm

  # With other values for variables
  flux build kustomization my-app --set region=eu --vars-file ./staging.env`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			if withHelm {
				return runKustomization(a, cmd, o, h, names)
			}
			return runKustomization(a, cmd, o, nil, names)
		},
	}
	fs := cmd.Flags()
	o.Add(fs)
	h.Add(fs)
	fs.BoolVar(&withHelm, "with-helm", false, "render the HelmReleases that it brings, too")
	fs.BoolVar(&o.DryRun, "dry-run", false, "ask no cluster: what the build needs is taken from the work tree")
	fs.VarP(command.Choice{Value: &o.Format, Allowed: []string{"yaml", "json"}}, "output", "o", "print yaml or json")
	o.Secrets.Add(fs)
	return cmd
}

// runKustomization also renders HelmReleases where h is given.
func runKustomization(a *app.App, cmd *cobra.Command, o *desired.BuildOptions, h *desired.HelmOptions, names []string) error {
	if len(names) != 1 {
		return clierr.WithHint("flux build kustomization NAME", "one Kustomization name is required")
	}
	if err := o.Secrets.Check(); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	plan, err := desired.NewPlan(ctx, a, cmd, o, names[0])
	if err != nil {
		return err
	}
	line := a.UI.Progress(a.Now, "building")
	result, err := plan.Run(ctx)
	line.Done()
	if result == nil {
		return desired.ExplainBuild(err)
	}
	failed := desired.ReportChildren(a, err)
	if h != nil {
		if err := addReleases(ctx, a, o, h, plan, result); err != nil {
			failed = err
		}
	}
	return errors.Join(printObjects(a, o, result), failed, context.Cause(ctx))
}

// printObjects prints objects so that they can be applied, unless secret values
// are masked. What SOPS has encrypted is always masked.
func printObjects(a *app.App, o *desired.BuildOptions, result *build.Result) error {
	items, masked := make([]unstructured.Unstructured, len(result.Objects)), 0
	for i, object := range result.Objects {
		shown, n := object.Unstructured, 0
		if o.Secrets.Masks(a.Out) {
			shown, n = build.WithoutSecrets(object)
		} else {
			shown, _ = build.Masked(shown)
		}
		items[i], masked = *shown, masked+n
	}
	if masked > 0 {
		a.UI.Warning("secret values are masked (%d): print them with --show-secrets", masked)
	}
	if o.Format == "json" {
		return output.PrintObjects(a.Answer(o.Format), o.Format, items, false)
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
