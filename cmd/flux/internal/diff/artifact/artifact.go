// Package artifact implements flux diff artifact and flux diff artifact-generator.
package artifact

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/repository/artifacts"
)

type options struct {
	oci.PackOptions
	access registry.Access
}

// NewCommand returns the command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{access: registry.Access{Provider: "generic"}}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Compare an OCI artifact with a local directory",
		Long: `Compare an artifact in an OCI registry with a local directory and list the files
that differ. It uses the credentials of "docker login" unless --creds or
--provider is set.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "the files are equal", clierr.ExitFailed: "files differ",
			clierr.ExitUndetermined: "the comparison failed, or the command line is invalid",
		}.Annotations(),
		Example: `  # Compare with the files that were pushed
  flux diff artifact oci://ghcr.io/org/manifests:latest --path ./deploy

  # Authenticate with a token
  flux diff artifact oci://ghcr.io/org/manifests:latest --path ./deploy --creds "me:$TOKEN"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(cmd.Context(), a, o, args) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Path, "path", "", "directory or file to compare with, '-' for standard input")
	o.Add(flags)
	oci.AddAccess(a, flags, &o.access)
	return cmd
}

func run(ctx context.Context, a *app.App, o *options, args []string) error {
	if len(args) != 1 {
		return hint.Errorf("flux diff artifact oci://ADDRESS:TAG --path DIR", "an artifact URL is required")
	}
	if o.Path == "" {
		return hint.Errorf("set the directory or file with --path", "--path is required")
	}
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	packed, err := oci.Pack(ctx, a, &o.PackOptions)
	if err != nil {
		return err
	}
	here, err := filesOf(ctx, packed)
	if err != nil {
		return err
	}
	archive, err := registry.Pull(ctx, args[0], o.access)
	if err != nil {
		return registry.Explain(ctx, o.access, err)
	}
	there, err := filesOf(ctx, archive)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", args[0], err)
	}
	changes := artifacts.Changes(there, here)
	if len(changes) == 0 {
		a.UI.Success("no changes detected")
		return nil
	}
	for _, change := range changes {
		a.UI.Line("%s %s", change.Action.Sign(), change.Path)
	}
	a.UI.Warning("%s differs from %s", args[0], o.Path)
	return &clierr.ExitCodeError{Code: 1}
}

// filesOf returns the files of an archive.
func filesOf(ctx context.Context, archive []byte) ([]artifacts.File, error) {
	tree, err := sourcetree.Archive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	return artifacts.Files(ctx, tree)
}
