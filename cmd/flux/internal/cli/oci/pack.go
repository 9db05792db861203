package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// PackOptions holds the flags of commands that pack a directory.
type PackOptions struct {
	Path               string
	Ignore, AlsoIgnore []string
	Resolve            bool
}

// ignoredInArtifacts is the default of --ignore-paths.
var ignoredInArtifacts = []string{
	".git/", ".gitignore", ".gitmodules", ".gitattributes", "*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip",
}

// Add adds the flags.
func (o *PackOptions) Add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Ignore, "ignore-paths", ignoredInArtifacts, "file patterns to exclude, in .gitignore format")
	fs.StringSliceVar(&o.AlsoIgnore, "add-ignore-paths", nil, "additional file patterns to exclude")
}

// Packable returns the directory or file to pack. Standard input is kept in a file until remove is
// called.
func Packable(ctx context.Context, a *app.App, path string) (from string, remove func() error, err error) {
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return "", nil, fmt.Errorf("nothing to pack: %w", err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() { // opening a named pipe may block forever
			return "", nil, hint.Errorf("use - to pack standard input", "%s is neither a directory nor a regular file", path)
		}
		return path, func() error { return nil }, nil
	}
	text, err := app.ReadInput(ctx, a, path)
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "flux-artifact-")
	if err != nil {
		return "", nil, fmt.Errorf("storing standard input: %w", err)
	}
	remove = func() error { return os.RemoveAll(folder) }
	from = filepath.Join(folder, "manifests.yaml")
	if err := os.WriteFile(from, text, 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("storing standard input: %w", err), remove())
	}
	return from, remove, nil
}

// WriteFile packs into a temporary file and renames it, so that the output is never
// incomplete.
func WriteFile(ctx context.Context, o *PackOptions, from, output string) (err error) {
	output, err = filepath.Abs(output)
	if err != nil {
		return fmt.Errorf("finding %s: %w", output, err)
	}
	options := sourcetree.ArtifactOptions{
		Ignore: append(append([]string{}, o.Ignore...), o.AlsoIgnore...), ResolveSymlinks: o.Resolve, Skip: []string{output},
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
	err = errors.Join(sourcetree.Artifact(ctx, &interruptible{ctx, file}, from, options), file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(file.Name(), output); err != nil {
		return fmt.Errorf("writing the artifact: %w", err)
	}
	return nil
}

// interruptible is a writer that fails when its context has ended, so that archiving a large file
// can be interrupted.
type interruptible struct {
	ctx context.Context // interruptible is used for one call only
	to  io.Writer
}

// Write implements io.Writer.
func (w *interruptible) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(p)
}

// Pack returns the files as an archive.
func Pack(ctx context.Context, a *app.App, o *PackOptions) ([]byte, error) {
	from, remove, err := Packable(ctx, a, o.Path)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	options := sourcetree.ArtifactOptions{Ignore: slices.Concat(o.Ignore, o.AlsoIgnore), ResolveSymlinks: o.Resolve}
	if err := errors.Join(sourcetree.Artifact(ctx, &interruptible{ctx, &archive}, from, options), remove()); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}
