package build

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/hint"
)

func newArtifact(a *app.App) *cobra.Command {
	o := &oci.PackOptions{}
	output := "artifact.tgz"
	cmd := &cobra.Command{
		Use:   "artifact",
		Short: "Build an artifact from a directory",
		Long: `Build an artifact from a directory: a gzipped tar file that can be pushed to a
registry. Builds are reproducible: identical files produce identical bytes.`,
		Example: `  # Build an artifact from the manifests of a directory
  flux build artifact --path ./deploy --output ./artifact.tgz

  # Exclude additional files
  flux build artifact --path ./deploy --add-ignore-paths='*.md,tests/'

  # Build an artifact from the output of another command
  kustomize build ./overlays/production | flux build artifact --path - --output ./artifact.tgz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runArtifact(cmd.Context(), a, o, output) },
	}
	fs := cmd.Flags()
	o.Add(fs)
	fs.StringVarP(&o.Path, "path", "p", "", "directory or file to pack, '-' for standard input")
	fs.StringVarP(&output, "output", "o", output, "path of the artifact file")
	fs.BoolVar(&o.Resolve, "resolve-symlinks", false, "pack the targets of symbolic links instead of skipping the links")
	return cmd
}

func runArtifact(ctx context.Context, a *app.App, o *oci.PackOptions, output string) error {
	if o.Path == "" {
		return hint.Errorf("set the directory or file with --path", "--path is required")
	}
	from, remove, err := oci.Packable(ctx, a, o.Path)
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
