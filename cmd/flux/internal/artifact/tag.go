package artifact

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
)

// NewTag returns the tag command.
func NewTag(a *app.App) *cobra.Command {
	return command.Group("tag", "Tag OCI artifacts", newTagArtifact(a))
}

type tagOptions struct {
	access registry.Access
	tags   []string
	format string
}

func newTagArtifact(a *app.App) *cobra.Command {
	o := &tagOptions{}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Tag an artifact in a registry",
		Long:  `Add tags to an artifact in an OCI registry. Only its manifest is transferred.`,
		Example: `  # Tag a version as latest
  flux tag artifact oci://ghcr.io/org/manifests:v1.2.0 --tag latest

  # Promote a tested artifact by its digest
  flux tag artifact oci://ghcr.io/org/manifests@sha256:2c26b46b68ff… --tag production --tag v1.2.0`,
		ValidArgsFunction: oci.CompleteAddress,
		RunE:              func(cmd *cobra.Command, args []string) error { return tagArtifact(a, cmd, o, args) },
	}
	flags := cmd.Flags()
	oci.AddAccess(a, flags, &o.access)
	flags.StringSliceVar(&o.tags, "tag", nil, "tag to add; can be repeated or separated by commas")
	command.AddOutput(flags, &o.format, "output format", "json", "yaml")
	return cmd
}

func tagArtifact(a *app.App, cmd *cobra.Command, o *tagOptions, args []string) error {
	address, err := oci.Address(cmd, args)
	if err != nil {
		return err
	}
	if len(o.tags) == 0 {
		return hint.Errorf("set --tag to one or more tags", "--tag is required")
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	a.UI.Action("tagging %s", address)
	var tagged []oci.Entry
	artifacts, failed := registry.Tag(ctx, address, o.tags, o.access)
	if failed != nil {
		failed = registry.Explain(ctx, o.access, failed)
	}
	for _, artifact := range artifacts {
		tagged = append(tagged, oci.EntryOf(artifact))
		a.UI.Success("artifact tagged as %s:%s", artifact.Repository, artifact.Tag)
	}
	if o.format != "" && len(tagged) > 0 {
		if err := a.Encode(o.format, tagged); err != nil {
			return err
		}
	}
	return failed
}
