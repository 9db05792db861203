// Package migrate implements the migrate command.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/migrate"
)

type options struct {
	path       string
	extensions []string
	version    string
	dryRun     bool
	yes        bool
	format     string
}

// NewCommand returns the migrate command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate Flux resources or manifests to the current API versions",
		Long: `Migrate the Flux resources that a cluster stores to the current API versions, or
with --path the manifests in files. Run both before upgrading to a Flux version
that no longer serves the old API versions.

Cluster:
  Each object that may be stored at an older version is rewritten at the storage
  version of the installed CRD, and the older versions are removed from the
  stored versions of the CRD. Field ownership is preserved.

Files:
  Lines with an older API version of a Flux kind are changed, including
  selectors and inline patches. Comments and layout are preserved. Lines whose
  kind cannot be determined are listed and left unchanged. --version is the Flux
  version on the clusters (default: the version that flux installs). An older
  Flux may not serve the new API versions: upgrade it before its manifests.

Fields:
  Fields that the newer version removed are moved to their replacement, or
  dropped if they have no effect. If neither is possible, as in JSON patches
  (RFC 6902), the field is listed with the remedy, and the object or file is
  left unchanged.`,
		Example: `  # Show the resources that are stored at older versions
  flux migrate --dry-run

  # Migrate the stored resources
  flux migrate

  # Preview and apply the changes to the manifests of a repository
  flux migrate -f . --dry-run
  flux migrate -f . --yes

  # Include chart templates
  flux migrate -f ./charts --extensions=.yaml,.yml,.tpl

  # Migrate manifests for clusters that run Flux 2.9
  flux migrate -f . --version=2.9`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.path, "path", "f", "", "file or directory with manifests to migrate instead of the cluster")
	flags.StringSliceVarP(&o.extensions, "extensions", "e", []string{".yaml", ".yml"}, "file extensions to migrate, with --path")
	flags.StringVarP(&o.version, "version", "v", "", "target Flux minor version, e.g. 2.6, with --path")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the changes without applying them")
	command.AddYes(flags, &o.yes, "skip the confirmation")
	command.AddOutput(flags, &o.format, "output format", "json", "yaml")
	cmd.AddCommand(newOwner(a))
	complete.Flag(cmd, "version", cobra.FixedCompletions(releases(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// releases returns the values of --version.
func releases() []string {
	var all []string
	for i := range int(migrate.Newest()) + 1 {
		all = append(all, migrate.Release(i).String())
	}
	return all
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if o.path != "" {
		return migrateFiles(cmd.Context(), a, o)
	}
	for _, flag := range []string{"extensions", "version"} {
		if cmd.Flags().Changed(flag) {
			return hint.Errorf("set --path to the manifests", "--%s requires --path", flag)
		}
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	return migrateCluster(ctx, a, client, o)
}

// migratedDefinition is a CustomResourceDefinition in JSON output.
type migratedDefinition struct {
	Definition string   `json:"crd"`
	Kind       string   `json:"kind"`
	Version    string   `json:"version"`
	Stored     []string `json:"stored"`
	Objects    int      `json:"objects"`
	// Fields are the fields that the storage version does not have.
	Fields []migratedField `json:"fields,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// migratedField is a field that the storage version of an object does not have.
type migratedField struct {
	Object  string `json:"object"`
	Outcome string `json:"outcome"`
	Blocked bool   `json:"blocked,omitempty"`
}

// fieldsOf returns the fields of objects that the storage version does not have.
func fieldsOf(d *migrate.CRD) []migratedField {
	var fields []migratedField
	for _, o := range d.Objects {
		for _, r := range o.Removals {
			fields = append(fields, migratedField{d.Name(o), r.Outcome(), r.Blocked != ""})
		}
	}
	return fields
}

func migrateCluster(ctx context.Context, a *app.App, client *kube.Client, o *options) error {
	var crds []controllers.Object
	_, err := client.List(ctx, kube.CRDs(), kube.Selection{}, func(crd controllers.Object) error {
		if kube.IsFluxGroup(controllers.Path{"spec.group"}.String(crd)) {
			crds = append(crds, crd)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
	}
	if len(crds) == 0 {
		return hint.Errorf("install it with 'flux install'", "no Flux CRDs found in the cluster")
	}
	due, err := migrate.Outdated(ctx, client, crds)
	if err != nil {
		return err
	}
	if len(due) > 0 && !o.dryRun {
		if err := client.Access().Check(ctx, migrate.Permissions(due)); err != nil {
			return err
		}
	}
	report, failed := []migratedDefinition{}, false
	for _, d := range due {
		line := migratedDefinition{Definition: d.CRD, Kind: d.Resource.Kind, Version: d.Resource.Version, Stored: slices.Concat([]string{}, d.Stored), Objects: len(d.Objects), Fields: fieldsOf(d)}
		if err := migrateDefinition(ctx, a, client, d, o.dryRun); err != nil {
			if ctx.Err() != nil {
				return err
			}
			a.UI.Failure("%s: %s", d.CRD, err)
			line.Error, failed = err.Error(), true
		}
		report = append(report, line)
	}
	if len(due) == 0 {
		a.UI.Success("all resources are stored at their current API version")
	}
	if o.format != "" {
		err = a.Encode(o.format, report)
	}
	if failed {
		err = errors.Join(err, clierr.ErrReported)
	}
	return err
}

func migrateDefinition(ctx context.Context, a *app.App, client *kube.Client, d *migrate.CRD, dryRun bool) error {
	what := fmt.Sprintf("%s: %s", d.CRD, output.Amount(len(d.Objects), "object"))
	stored := strings.Join(d.Stored, " and ")
	blocked := 0
	for _, f := range fieldsOf(d) {
		if !f.Blocked {
			a.UI.Action("%s: %s", f.Object, f.Outcome)
		} else if dryRun { // otherwise, the migration returns it
			a.UI.Failure("%s: %s", f.Object, f.Outcome)
			blocked++
		}
	}
	if dryRun {
		a.UI.Action("%s to rewrite as %s", what, d.Resource.Version)
		if stored != "" {
			a.UI.Action("%s: %s to remove from the stored versions", d.CRD, stored)
		}
		if blocked > 0 {
			return fmt.Errorf("%s cannot be rewritten", output.Amount(blocked, "object"))
		}
		return nil
	}
	if err := d.Migrate(ctx, client, kube.CRDs()); err != nil {
		return err
	}
	if stored != "" {
		stored = ", " + stored + " no longer stored"
	}
	a.UI.Success("%s rewritten as %s%s", what, d.Resource.Version, stored)
	return nil
}
