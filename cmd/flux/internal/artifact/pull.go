package artifact

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
)

// NewPull returns the pull command.
func NewPull(a *app.App) *cobra.Command {
	return command.Group("pull", "Unpack artifacts from registries and sources into a directory", newPullArtifact(a), newPullSource(a))
}

type pullOptions struct {
	access registry.Access
	folder string
}

func newPullArtifact(a *app.App) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Unpack an artifact from a registry into a directory",
		Long: `Unpack an artifact from an OCI registry into a directory, which is created if it
does not exist. Existing files are kept unless the artifact replaces them.

The digest is verified before the directory is changed: if the artifact is
malformed or too large, or the command is interrupted, nothing is changed. No
files are written outside the directory.`,
		Example: `  # Unpack a tag
  flux pull artifact oci://ghcr.io/org/manifests:v1.2.0 --output ./manifests

  # Use a local registry without TLS
  flux pull artifact oci://localhost:5000/manifests:latest --output ./manifests --insecure-registry`,
		ValidArgsFunction: oci.CompleteAddress,
		RunE:              func(cmd *cobra.Command, args []string) error { return pullArtifact(a, cmd, o, args) },
	}
	flags := cmd.Flags()
	oci.AddAccess(a, flags, &o.access)
	flags.StringVarP(&o.folder, "output", "o", "", "directory to unpack the artifact into")
	return cmd
}

func pullArtifact(a *app.App, cmd *cobra.Command, o *pullOptions, args []string) error {
	address, err := oci.Address(cmd, args)
	if err != nil {
		return err
	}
	if o.folder == "" {
		return hint.Errorf("set --output to a directory", "--output is required")
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	a.UI.Action("pulling artifact from %s", address)
	line := a.UI.Progress(a.Now, "pulling")
	defer line.Done()
	o.access.Progress = line.Bytes
	artifact, archive, err := registry.Stream(ctx, address, o.access)
	if err != nil {
		return registry.Explain(ctx, o.access, err)
	}
	left, err := registry.Extract(ctx, archive, o.folder)
	if errors.Is(err, registry.ErrLost) {
		return errors.Join(hint.Errorf("run the command again", "%w", err), archive.Close())
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	for _, line := range []struct{ what, value string }{
		{"source", artifact.Annotations[registry.SourceAnnotation]},
		{"revision", artifact.Annotations[registry.RevisionAnnotation]},
		{"digest", artifact.Repository + "@" + artifact.Digest},
	} {
		if line.value != "" {
			a.UI.Success("%s %s", line.what, line.value)
		}
	}
	for _, name := range left {
		a.UI.Warning("%s is not a file or directory: skipped", name)
	}
	a.UI.Success("artifact content extracted to %s", o.folder)
	return nil
}
