package main

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/registry"
)

func newTag(a *app) *cobra.Command {
	return group("tag", "Tag OCI artifacts", newTagArtifact(a))
}

type tagOptions struct {
	access registry.Access
	tags   []string
	format string
}

func newTagArtifact(a *app) *cobra.Command {
	o := &tagOptions{}
	cmd := &cobra.Command{
		Use:   "artifact [oci://address:tag]",
		Short: "Give an artifact in a registry more tags",
		Long: `Give an artifact in an OCI registry more tags. Nothing is fetched or sent but
its manifest.`,
		Example: `  # Make a version the newest one
  flux tag artifact oci://ghcr.io/org/manifests:v1.2.0 --tag latest

  # Promote what has been tested, by its digest
  flux tag artifact oci://ghcr.io/org/manifests@sha256:2c26b46b68ff… --tag production --tag v1.2.0`,
		ValidArgsFunction: completeAddress,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.tagArtifact(cmd, o, args) },
	}
	flags := cmd.Flags()
	a.addAccess(flags, &o.access)
	flags.StringSliceVar(&o.tags, "tag", nil, "the tag to give; can be given several times, or with commas")
	addReport(flags, &o.format)
	return cmd
}

func (a *app) tagArtifact(cmd *cobra.Command, o *tagOptions, args []string) error {
	address, err := artifactAddress(cmd, args)
	if err != nil {
		return err
	}
	if len(o.tags) == 0 {
		return hinted("name it with --tag", "there is no tag to give")
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	a.ui.Action("tagging %s", address)
	var tagged []artifactEntry
	artifacts, failed := registry.Tag(ctx, address, o.tags, o.access)
	if failed != nil {
		failed = a.registryError(ctx, o.access, failed)
	}
	for _, artifact := range artifacts {
		tagged = append(tagged, entryOf(artifact))
		a.ui.Success("artifact tagged as %s:%s", artifact.Repository, artifact.Tag)
	}
	if o.format != "" && len(tagged) > 0 {
		if err := a.encode(o.format, tagged); err != nil {
			return err
		}
	}
	return failed
}
