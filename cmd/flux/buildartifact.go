package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/build"
)

// packOptions are the flags of all that packs a folder.
type packOptions struct {
	path               string
	ignore, alsoIgnore []string
	resolve            bool
}

// ignoredInArtifacts are left out of artifacts unless --ignore-paths says otherwise.
var ignoredInArtifacts = []string{
	".git/", ".gitignore", ".gitmodules", ".gitattributes", "*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip",
}

func newBuildArtifact(a *app) *cobra.Command {
	o := &packOptions{}
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
		RunE: func(cmd *cobra.Command, _ []string) error { return a.buildArtifact(cmd.Context(), o, output) },
	}
	fs := cmd.Flags()
	o.add(fs)
	fs.StringVarP(&o.path, "path", "p", "", "the folder or file to pack; - for standard input")
	fs.StringVarP(&output, "output", "o", output, "the file to write")
	fs.BoolVar(&o.resolve, "resolve-symlinks", false, "pack what symbolic links point to, instead of leaving them out")
	return cmd
}

func (o *packOptions) add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.ignore, "ignore-paths", ignoredInArtifacts, "leave out what these patterns match, in the format of .gitignore")
	fs.StringSliceVar(&o.alsoIgnore, "add-ignore-paths", nil, "leave out what these patterns match, too")
}

func (a *app) buildArtifact(ctx context.Context, o *packOptions, output string) error {
	if o.path == "" {
		return hinted("name the folder with --path", "there is nothing to pack")
	}
	from, remove, err := a.packable(o.path)
	if err != nil {
		return err
	}
	a.ui.Action("building artifact from %s", o.path)
	err = errors.Join(writeArtifact(ctx, o, from, output), remove())
	if err != nil {
		return err
	}
	a.ui.Success("artifact created at %s", output)
	return nil
}

// packable is the folder or file to pack. Standard input is kept in a file
// until remove is called.
func (a *app) packable(path string) (from string, remove func() error, err error) {
	if path != "-" {
		if _, err := os.Stat(path); err != nil {
			return "", nil, fmt.Errorf("nothing to pack: %w", err)
		}
		return path, func() error { return nil }, nil
	}
	text, err := a.readInput(path)
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "flux-artifact-")
	if err != nil {
		return "", nil, fmt.Errorf("keeping standard input: %w", err)
	}
	remove = func() error { return os.RemoveAll(folder) }
	from = filepath.Join(folder, "manifests.yaml")
	if err := os.WriteFile(from, text, 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("keeping standard input: %w", err), remove())
	}
	return from, remove, nil
}

// writeArtifact packs into a file beside the output first: nobody finds half an artifact.
func writeArtifact(ctx context.Context, o *packOptions, from, output string) (err error) {
	output, err = filepath.Abs(output)
	if err != nil {
		return fmt.Errorf("finding %s: %w", output, err)
	}
	options := build.ArtifactOptions{
		Ignore: append(append([]string{}, o.ignore...), o.alsoIgnore...), ResolveSymlinks: o.resolve, Skip: []string{output},
	}
	file, err := os.CreateTemp(filepath.Dir(output), ".artifact-*.tgz")
	if err != nil {
		return fmt.Errorf("writing the artifact: %w", err)
	}
	options.Skip = append(options.Skip, file.Name())
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	err = errors.Join(build.Artifact(ctx, file, from, options), file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(file.Name(), output); err != nil {
		return fmt.Errorf("writing the artifact: %w", err)
	}
	return nil
}
