// Package artifact implements the artifact subcommands of push, pull, tag and list.
package artifact

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// NewList returns the list command.
func NewList(a *app.App) *cobra.Command {
	return command.Group("list", "List artifacts in OCI registries", newListArtifacts(a))
}

type listOptions struct {
	access         registry.Access
	semver, regexp string
	format         string
}

func newListArtifacts(a *app.App) *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:     "artifacts [oci://address]",
		Aliases: []string{"artifact"},
		Short:   "List the artifacts of a repository in a registry",
		Long: `List the artifacts of a repository in an OCI registry with their digests, sources
and revisions. Cosign signatures and attestations are not listed.`,
		Example: `  # List all tags
  flux list artifacts oci://ghcr.io/org/manifests

  # List versions 1.2 and later
  flux list artifacts oci://ghcr.io/org/manifests --filter-semver='>=1.2.0'

  # Print the digest of a tag
  flux list artifacts oci://ghcr.io/org/manifests --filter-regex='^latest$' -o json | jq -r '.[].digest'`,
		ValidArgsFunction: oci.CompleteAddress,
		RunE:              func(cmd *cobra.Command, args []string) error { return listArtifacts(a, cmd, o, args) },
	}
	flags := cmd.Flags()
	oci.AddAccess(a, flags, &o.access)
	flags.StringVar(&o.semver, "filter-semver", "", "semver range, e.g. '>=1.0.0 <2.0.0'")
	flags.StringVar(&o.regexp, "filter-regex", "", "regular expression for tags")
	command.AddOutput(flags, &o.format, "output format", "json", "yaml")
	return cmd
}

func listArtifacts(a *app.App, cmd *cobra.Command, o *listOptions, args []string) error {
	address, err := oci.Address(cmd, args)
	if err != nil {
		return err
	}
	wanted, err := o.filter()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	artifacts, err := registry.List(ctx, address, wanted, o.access)
	if err != nil {
		return registry.Explain(ctx, o.access, err)
	}
	entries := []oci.Entry{} // encoded as [], not null
	table := output.Table{Headers: []string{"ARTIFACT", "DIGEST", "SOURCE", "REVISION"}}
	for _, artifact := range artifacts {
		e := oci.EntryOf(artifact)
		entries = append(entries, e)
		table.Rows = append(table.Rows, []string{e.Repository + ":" + e.Tag, e.Digest, e.Source, e.Revision})
	}
	if o.format != "" {
		return a.Encode(o.format, entries)
	}
	if len(entries) == 0 {
		a.UI.Line("no artifacts found")
		return nil
	}
	return a.Table(table, app.TableStyle{})
}

// filter selects tags.
func (o *listOptions) filter() (func(tag string) bool, error) {
	var in *semver.Constraints
	var like *regexp.Regexp
	var err error
	if o.semver != "" {
		if in, err = semver.NewConstraint(o.semver); err != nil {
			return nil, fmt.Errorf("reading --filter-semver %q: %w", o.semver, err)
		}
	}
	if o.regexp != "" {
		if like, err = regexp.Compile(o.regexp); err != nil {
			return nil, fmt.Errorf("reading --filter-regex: %w", err)
		}
	}
	return func(tag string) bool {
		if like != nil && !like.MatchString(tag) {
			return false
		}
		if in == nil {
			return true
		}
		version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		return err == nil && in.Check(version)
	}, nil
}
