package diff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
)

type artifactOptions struct {
	oci.PackOptions
	access registry.Access
}

func newArtifact(a *app.App) *cobra.Command {
	o := &artifactOptions{access: registry.Access{Provider: "generic"}}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Tell whether an artifact in a registry holds the files of a folder",
		Long: `Tell whether an artifact in an OCI registry holds the files of a folder, and
name those that differ.

It exits with 0 when they are the same, 1 when they differ, and 2 when that
could not be found out. Credentials are those of 'docker login' unless others
are given; those of a cloud come from its credential helper for docker.`,
		Example: `  # Has anything changed since it was pushed?
  flux diff artifact oci://ghcr.io/org/manifests:latest --path ./deploy

  # With a token
  flux diff artifact oci://ghcr.io/org/manifests:latest --path ./deploy --creds "me:$TOKEN"`,
		RunE: func(cmd *cobra.Command, args []string) error { return runArtifact(cmd.Context(), a, o, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Path, "path", "", "the folder or file to compare with; - for standard input")
	o.Add(flags)
	oci.AddAccess(a, flags, &o.access)
	return cmd
}

func runArtifact(ctx context.Context, a *app.App, o *artifactOptions, args []string) error {
	if len(args) != 1 {
		return clierr.WithHint("flux diff artifact oci://ADDRESS:TAG --path FOLDER", "one address of an artifact is required")
	}
	if o.Path == "" {
		return clierr.WithHint("name the folder with --path", "there is nothing to compare with")
	}
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	here, err := packed(ctx, a, o)
	if err != nil {
		return err
	}
	archive, err := registry.Pull(ctx, args[0], o.access)
	if err != nil {
		return oci.ExplainError(ctx, o.access, err)
	}
	there, err := filesOf(archive)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", args[0], err)
	}
	lines := differences(there, here)
	if len(lines) == 0 {
		a.UI.Success("no changes detected")
		return nil
	}
	for _, line := range lines {
		a.UI.Line("%s", line)
	}
	a.UI.Warning("%s holds other files than %s", args[0], o.Path)
	return &clierr.ExitCodeError{Code: 1}
}

// packed are the local files as an artifact would hold them.
func packed(ctx context.Context, a *app.App, o *artifactOptions) (map[string][]byte, error) {
	from, remove, err := oci.Packable(a, o.Path)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	options := build.ArtifactOptions{Ignore: slices.Concat(o.Ignore, o.AlsoIgnore)}
	if err := errors.Join(build.Artifact(ctx, &archive, from, options), remove()); err != nil {
		return nil, err
	}
	return filesOf(archive.Bytes())
}

// filesOf are the files in an archive by their paths.
func filesOf(archive []byte) (map[string][]byte, error) {
	tree, err := build.Archive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = tree.ReadFile(path)
		return err
	})
	return files, err
}

// differences names the files that differ, with what happens to them.
func differences(there, here map[string][]byte) []string {
	names := maps.Clone(there)
	maps.Copy(names, here)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, was := there[name]
		young, is := here[name]
		switch {
		case !was:
			lines = append(lines, "+ "+name)
		case !is:
			lines = append(lines, "- "+name)
		case !bytes.Equal(old, young):
			lines = append(lines, "± "+name)
		}
	}
	return lines
}
