package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/registry"
)

func newPull(a *app) *cobra.Command {
	return group("pull", "Pull artifacts from OCI registries", newPullArtifact(a))
}

type pullOptions struct {
	access registry.Access
	folder string
}

func newPullArtifact(a *app) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Unpack an artifact from a registry into a folder",
		Long: `Unpack an artifact from an OCI registry into a folder, which is made where it
is missing. What is there stays where no file of the artifact takes its place.

The artifact is unpacked beside the folder first, and its digest verified: if it
is malformed or too large, or the command is interrupted, the folder is as it was.
Nothing is ever written outside of the folder.`,
		Example: `  # See what a tag holds
  flux pull artifact oci://ghcr.io/org/manifests:v1.2.0 --output ./manifests

  # From a registry of one's own
  flux pull artifact oci://localhost:5000/manifests:latest --output ./manifests --insecure-registry`,
		ValidArgsFunction: completeAddress,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.pullArtifact(cmd, o, args) },
	}
	flags := cmd.Flags()
	a.addAccess(flags, &o.access)
	flags.StringVarP(&o.folder, "output", "o", "", "the folder to unpack into")
	return cmd
}

func (a *app) pullArtifact(cmd *cobra.Command, o *pullOptions, args []string) error {
	address, err := artifactAddress(cmd, args)
	if err != nil {
		return err
	}
	if o.folder == "" {
		return hinted("name a folder with --output", "there is nowhere to unpack the artifact")
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	a.ui.Action("pulling artifact from %s", address)
	line := a.ui.Progress(a.now, "pulling")
	defer line.Done()
	o.access.Progress = line.Bytes
	artifact, archive, err := registry.Stream(ctx, address, o.access)
	if err != nil {
		return a.registryError(ctx, o.access, err)
	}
	left, err := registry.Extract(ctx, archive, o.folder)
	if err = errors.Join(err, archive.Close()); err != nil {
		return a.registryError(ctx, o.access, err)
	}
	for _, line := range []struct{ what, value string }{
		{"source", artifact.Annotations[registry.SourceAnnotation]},
		{"revision", artifact.Annotations[registry.RevisionAnnotation]},
		{"digest", artifact.Repository + "@" + artifact.Digest},
	} {
		if line.value != "" {
			a.ui.Success("%s %s", line.what, line.value)
		}
	}
	for _, name := range left {
		a.ui.Warning("%s is no file or folder, and is left out", name)
	}
	a.ui.Success("artifact content extracted to %s", o.folder)
	return nil
}
