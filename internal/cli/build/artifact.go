package build

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/oci"
)

func newArtifact(a *app.App) *cobra.Command {
	o := &oci.PackOptions{}
	output := "artifact.tgz"
	cmd := &cobra.Command{
		Use:   "artifact",
		Short: "Pack a folder into an artifact",
		Long: `Pack a folder into an artifact: a gzipped tar file that can be pushed to a
registry. The same files give the same bytes, whoever packs them and when.`,
		Example: `  # Pack the manifests of a folder
  flux build artifact --path ./deploy --output ./artifact.tgz

  # Leave out what else is there
  flux build artifact --path ./deploy --add-ignore-paths='*.md,tests/'

  # Pack what another command prints
  kustomize build ./overlays/production | flux build artifact --path - --output ./artifact.tgz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runArtifact(cmd.Context(), a, o, output) },
	}
	fs := cmd.Flags()
	o.Add(fs)
	fs.StringVarP(&o.Path, "path", "p", "", "the folder or file to pack; - for standard input")
	fs.StringVarP(&output, "output", "o", output, "the file to write")
	fs.BoolVar(&o.Resolve, "resolve-symlinks", false, "pack what symbolic links point to, instead of leaving them out")
	return cmd
}

func runArtifact(ctx context.Context, a *app.App, o *oci.PackOptions, output string) error {
	if o.Path == "" {
		return clierr.WithHint("name the folder with --path", "there is nothing to pack")
	}
	from, remove, err := oci.Packable(a, o.Path)
	if err != nil {
		return err
	}
	a.UI.Action("building artifact from %s", o.Path)
	err = errors.Join(oci.WriteFile(ctx, o, from, output), remove())
	if err != nil {
		return err
	}
	a.UI.Success("artifact created at %s", output)
	return nil
}
