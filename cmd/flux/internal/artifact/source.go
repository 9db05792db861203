package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

type sourceOptions struct {
	folder string
	list   bool
}

func newPullSource(a *app.App) *cobra.Command {
	var children []*cobra.Command
	for _, k := range controllers.Family("source") {
		children = append(children, newPullKind(a, k))
	}
	return command.Group("source", "Unpack the artifacts of sources into a directory", children...)
}

func newPullKind(a *app.App, k controllers.Kind) *cobra.Command {
	o, kind := &sourceOptions{}, controllers.Indefinite(k.Kind)
	cmd := &cobra.Command{
		Use:   k.Word + " [name]",
		Short: "Unpack the artifact of " + kind + " into a directory",
		Long: `Unpack the artifact of ` + kind + ` (the files that the controllers use) into a
directory. The directory is created if it does not exist; existing files are kept
unless the artifact replaces them.

The artifact is read from its controller through the API server. The digest is
verified before the directory is changed. No files are written outside the
directory.`,
		Example: `  # Unpack the artifact
  flux pull source ` + k.Word + ` my-app --output ./my-app

  # List the files in the artifact
  flux pull source ` + k.Word + ` my-app --list`,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return pullSource(a, cmd, o, k, args) })
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.folder, "output", "o", "", "directory to unpack the artifact into")
	flags.BoolVar(&o.list, "list", false, "list the files in the artifact instead of unpacking it")
	return cmd
}

func pullSource(a *app.App, cmd *cobra.Command, o *sourceOptions, k controllers.Kind, args []string) error {
	switch {
	case len(args) != 1:
		return clierr.Usage(cmd, k.Kind+" name is required")
	case o.list && o.folder != "":
		return errors.New("--list and --output are mutually exclusive")
	case !o.list && o.folder == "":
		return hint.Errorf("set --output to a directory, or list the files with --list", "--output or --list is required")
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	t := objref.Target{Kind: k, Namespace: namespace, Name: args[0]}
	if err := t.Read(ctx, client); err != nil {
		return err
	}
	at, ok := artifact.Of(t.Object)
	if !ok {
		return hint.Errorf(hint.Command("flux why "+k.Noun()+" %s -n %s", t.Name, t.Namespace), "%s has no artifact: %s", t, k.Ready(t.Object).Message)
	}
	archive, err := artifact.Fetch(ctx, client, at, a.FluxNamespace())
	if gone := (*artifact.GoneError)(nil); errors.As(err, &gone) {
		return hint.Errorf("run the command again: the source may have a newer artifact", "%w", err)
	}
	if err != nil {
		return err
	}
	if o.list {
		return listFiles(a, at, archive)
	}
	if err := unpackSource(ctx, a, o.folder, at, archive); err != nil {
		return err
	}
	a.UI.Success("revision %s", at.Revision)
	a.UI.Success("digest %s", at.Digest)
	a.UI.Success("artifact content extracted to %s", o.folder)
	return nil
}

// packed reports whether an artifact is an archive. A HelmRepository artifact is the repository
// index.
func packed(archive []byte) bool { return bytes.HasPrefix(archive, []byte{0x1f, 0x8b}) }

// fileName returns the name of the file of an artifact that is not an archive.
func fileName(at artifact.Artifact) string { return path.Base(at.URL) }

func listFiles(a *app.App, at artifact.Artifact, archive []byte) error {
	names := []string{fileName(at)}
	if packed(archive) {
		tree, err := sourcetree.Archive(bytes.NewReader(archive))
		if err != nil {
			return fmt.Errorf("reading the artifact: %w", err)
		}
		names = nil
		err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	a.UI.Success("revision %s", at.Revision)
	for _, name := range names {
		if _, err := fmt.Fprintln(a.Out, printable.Line(name)); err != nil {
			return err
		}
	}
	return nil
}

func unpackSource(ctx context.Context, a *app.App, folder string, at artifact.Artifact, archive []byte) error {
	if !packed(archive) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("creating the directory: %w", err)
		}
		return output.ReplaceFile(filepath.Join(folder, fileName(at)), archive)
	}
	left, err := registry.Extract(ctx, bytes.NewReader(archive), folder)
	for _, name := range left {
		a.UI.Warning("%s is not a file or directory: skipped", name)
	}
	return err
}
