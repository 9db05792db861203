// Package checks contains the flags and the repository access that validate and audit share.
package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cachedir"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/location"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// Options holds the flag values.
type Options struct {
	buildflags.Options
	helm        desired.HelmOptions
	paths       []string
	revision    string
	fluxVersion string
	// locations are additional schema locations.
	locations []string
	withHelm  bool
	// NoSources accepts Kustomizations and HelmReleases that cannot be rendered.
	NoSources bool
}

// Add adds the flags to cmd. doing is the verb in help texts, such as "validate".
func (o *Options) Add(a *app.App, cmd *cobra.Command, doing string) {
	fs := cmd.Flags()
	fs.StringArrayVar(&o.paths, "path", nil, "directory of the cluster, e.g. clusters/production; for several clusters, repeat it or quote a pattern (default: detected cluster directories)")
	fs.StringVar(&o.revision, "revision", "", "revision to "+doing+": branch, tag or commit (default: the work tree)")
	complete.Revisions(cmd, "revision")
	fs.StringVar(&o.helm.KubeVersion, "kube-version", verdict.KubernetesVersions()[0], "Kubernetes version for schemas and chart capabilities: "+strings.Join(verdict.KubernetesVersions(), ", "))
	complete.Flag(cmd, "kube-version", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return verdict.KubernetesVersions(), cobra.ShellCompDirectiveNoFileComp
	})
	fs.StringSliceVar(&o.helm.APIVersions, "api-versions", nil, "additional API versions for chart capabilities, e.g. monitoring.coreos.com/v1")
	fs.StringVar(&o.fluxVersion, "flux-version", controllers.DefaultVersion, "Flux version of the CRDs if the repository does not contain them: "+strings.Join(controllers.EmbeddedVersions(), ", "))
	command.CompleteEmbeddedVersion(cmd, "flux-version")
	fs.StringArrayVar(&o.locations, "schema-location", nil, "directory, or URL template as in kubeconform, with schemas and CRDs that are not in the repository (can be repeated)")
	complete.Flag(cmd, "schema-location", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{location.Example}, cobra.ShellCompDirectiveDefault
	})
	fs.BoolVar(&o.withHelm, "with-helm", true, "also render and "+doing+" the charts of HelmReleases")
	fs.BoolVar(&o.NoSources, "allow-missing-sources", false, "accept Kustomizations and HelmReleases that cannot be fully rendered")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "local directories to use for sources with other URLs, e.g. OCIRepository/flux-system/apps=./apps")
	o.AddLocal(cmd)
	o.AddVariables(fs)
	o.AddRemote(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
}

// Repository is an open repository with its clusters and the options of the checks.
type Repository struct {
	checkout *git.Clone
	Clusters validate.Clusters
	Options  validate.Options
	// Kubernetes is the minor version, such as 1.36.
	Kubernetes string
}

// Open returns the repository in the current directory. The caller must close it.
func (o *Options) Open(ctx context.Context, a *app.App, cmd *cobra.Command) (*Repository, error) {
	minor, err := verdict.Minor(o.helm.KubeVersion)
	if err != nil {
		return nil, hint.Errorf("use --kube-version "+verdict.KubernetesVersions()[0], "%w", err)
	}
	crds, err := fluxCRDs(o.fluxVersion)
	if err != nil {
		return nil, err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return nil, err
	}
	checkout, err := buildflags.OpenRepository(a)
	if err != nil {
		return nil, err
	}
	r := &Repository{checkout: checkout, Kubernetes: minor}
	if err := o.prepare(ctx, a, r, namespace, crds); err != nil {
		return nil, errors.Join(err, checkout.Close())
	}
	r.Options.Assumed = !cmd.Flags().Changed("flux-version")
	if r.Clusters, err = r.Options.Find(ctx, checkout, o.revision, o.paths); err != nil {
		return nil, errors.Join(err, checkout.Close())
	}
	r.Clusters.Warn(a.UI.Warning)
	return r, nil
}

func (o *Options) prepare(ctx context.Context, a *app.App, r *Repository, namespace string, crds []*unstructured.Unstructured) error {
	if err := o.ReadLocal(ctx, a); err != nil {
		return err
	}
	base, err := o.Graph(ctx, a, r.checkout, namespace, o.helm)
	if err != nil {
		return err
	}
	if o.withHelm {
		if base.Charts.Renderer, err = o.Charts(a); err != nil {
			return err
		}
	}
	schemas, err := o.schemas(a)
	if err != nil {
		return err
	}
	r.Options = validate.Options{
		Options: base, Schemas: schemas, Kubernetes: r.Kubernetes,
		CRDs: crds, CRDsOf: manifests.CRDs, Versions: verdict.New(a.Helpers), FluxVersion: o.fluxVersion,
		Supported: sync.OnceValues(supportedCRDs), Expressions: expression.New(a.Helpers),
	}
	return nil
}

// schemas returns the Kubernetes schemas, the CRD schemas, and the schemas in the schema locations.
func (o *Options) schemas(a *app.App) (verdict.Schemas, error) {
	settings := location.Settings{Agent: "flux/" + a.Build.Version, Now: a.Now}
	if cache, err := cachedir.User("schemas"); err == nil { // without a cache directory, schemas are not cached
		settings.Cache = string(cache)
	}
	return location.New(o.locations, verdict.New(a.Helpers), settings)
}

// Close releases the Git clone.
func (r *Repository) Close() error { return r.checkout.Close() }

// Each runs check for every cluster of the repository.
func (r *Repository) Each(
	ctx context.Context, a *app.App, doing string, check func(context.Context, validate.Options) (*validate.Result, error),
) ([]*validate.Result, error) {
	noted := map[string]bool{}
	var results []*validate.Result
	for _, path := range r.Clusters.Paths {
		line := a.UI.Progress(a.Now, "%s %s", doing, path)
		o := r.Options
		o.Path = path
		o.Note = func(text string) {
			if !noted[text] {
				a.UI.Action("%s", text)
			}
			noted[text] = true
		}
		result, err := check(ctx, o)
		line.Done()
		if err != nil && len(r.Clusters.Paths) > 1 {
			err = fmt.Errorf("%s %s: %w", doing, path, err)
		}
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	if n := r.checkout.Lacking(); n > 0 {
		return nil, hint.Errorf("run git checkout, or clone the repository without --filter", "this partial clone is missing %d of the files", n)
	}
	return results, nil
}

// fluxCRDs returns the CRDs of an embedded Flux version.
func fluxCRDs(version string) ([]*unstructured.Unstructured, error) {
	d, err := command.EmbeddedVersion("--flux-version", version)
	if err != nil {
		return nil, err
	}
	return manifests.CRDs(d.Version)
}

// supportedCRDs returns the CRDs of all embedded Flux versions.
func supportedCRDs() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, version := range controllers.EmbeddedVersions() {
		crds, err := manifests.CRDs(version)
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	return all, nil
}
