// Package buildflags has the flags of commands that build the desired state of
// Kustomizations and HelmReleases, and the builder for them.
package buildflags

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/mapflags"
	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/repository/clone"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// Options holds the flag values.
type Options struct {
	desired.Options
	// mapped and inputs hold the values of the AddLocal flags.
	mapped mapflags.Flags
	inputs Inputs
	// noCache disables the rendering cache.
	noCache bool
}

// Add adds the flags for building Kustomizations to fs.
func (o *Options) Add(fs *pflag.FlagSet) {
	fs.StringVar(&o.Path, "path", "", "directory to build (default: spec.path in the Git work tree)")
	fs.StringVar(&o.File, "kustomization-file", "", "file with the Kustomization to use instead of the live object, '-' for standard input")
	fs.StringSliceVar(&o.Ignore, "ignore-paths", nil, "paths to exclude, in .gitignore format")
	fs.BoolVarP(&o.Recursive, "recursive", "r", false, "also build nested Kustomizations and ResourceSets")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "local directories to use for other sources with --recursive, e.g. GitRepository/flux-system/my-repo=./repo")
	o.AddVariables(fs)
	o.AddRemote(fs)
	fs.Bool("in-memory-build", false, "accepted for compatibility: builds always happen in memory")
}

// AddVariables adds the flags for variable substitution to fs.
func (o *Options) AddVariables(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Strict, "strict-substitute", false, "fail if a variable without a default has no value")
	fs.StringToStringVar(&o.Set, "set", nil, "substitution variables to set or override, e.g. region=eu")
	fs.StringVar(&o.VarsFile, "vars-file", "", "file with substitution variables: NAME=value lines, a YAML map, a ConfigMap or a Secret")
}

// AddRemote adds the flags for remote sources to fs. Without --provider, no cloud credentials are
// requested, because spec.provider may come from a proposed change.
func (o *Options) AddRemote(fs *pflag.FlagSet) {
	fs.StringSliceVar((*[]string)(&o.Hosts), "allow-remote-bases", nil, "allowed hosts of remote bases, and of charts at private addresses, e.g. github.com (default: none)")
	o.AddProvider(fs, "OCI sources and other revisions of Git sources")
	fs.BoolVar(&o.noCache, "no-cache", false, "do not use cached results of previous runs")
}

// AddUntrusted adds the flag for files from untrusted authors to fs. The default depends on the pull request
// that the CI system builds.
func AddUntrusted(a *app.App, fs *pflag.FlagSet, untrusted *bool) {
	fs.BoolVar(untrusted, "untrusted", ci.Read(a.Env).Fork, "treat the author of the files as untrusted: do not read Secrets or decrypt files (default: true in CI for pull requests from forks)")
	fs.Lookup("untrusted").DefValue = "false" // the help does not depend on the environment
}

// AddProvider adds the flag --provider to fs. sources describes the affected sources in the help text.
func (o *Options) AddProvider(fs *pflag.FlagSet, sources string) {
	fs.Var(command.Choice{Value: &o.Provider, Allowed: []string{cloud.AWS, cloud.Azure, cloud.GCP}}, "provider",
		"authenticate with the cloud identity in the environment to "+sources+" with this spec.provider: aws, azure or gcp (default: none)")
}

// AddRelease adds the flags that select a HelmRelease and its sources to fs.
func (o *Options) AddRelease(fs *pflag.FlagSet) {
	fs.StringVar(&o.File, "helmrelease-file", "", "file with the HelmRelease to use instead of the live object, '-' for standard input")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "local directories to use for sources, e.g. GitRepository/flux-system/my-repo=./repo")
	o.AddRemote(fs)
}

// AddGenerator adds the flags that select an ArtifactGenerator and its sources to fs.
func (o *Options) AddGenerator(fs *pflag.FlagSet) {
	fs.StringVar(&o.File, "generator-file", "", "file with the ArtifactGenerator to use instead of the live object, '-' for standard input")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "local directories to use for sources, e.g. GitRepository/flux-system/my-repo=./repo")
	o.AddProvider(fs, "OCI sources")
}

// AddHelm adds the flags for rendering HelmReleases to fs.
func AddHelm(fs *pflag.FlagSet, h *desired.HelmOptions) {
	AddCapabilities(fs, h)
	fs.BoolVar(&h.Hooks, "hooks", false, "also print chart hooks")
	fs.BoolVar(&h.CRDs, "crds", true, "print the CRDs of charts")
}

// AddCapabilities adds the flags for chart capabilities to fs.
func AddCapabilities(fs *pflag.FlagSet, h *desired.HelmOptions) {
	fs.StringVar(&h.KubeVersion, "kube-version", "", "Kubernetes version for chart capabilities (default: version of the cluster, or "+desired.AssumedKubernetes+" with --dry-run)")
	fs.StringSliceVar(&h.APIVersions, "api-versions", nil, "additional API versions for chart capabilities, e.g. monitoring.coreos.com/v1")
}

// AddChart adds the flags that override the chart and the values of a HelmRelease to fs.
func AddChart(fs *pflag.FlagSet, o *desired.ChartOptions) {
	fs.StringVar(&o.Chart, "chart", "", "chart directory or archive to render instead of the chart of the HelmRelease")
	fs.StringArrayVar(&o.Values, "values", nil, "values file that overrides the values of the HelmRelease (repeatable)")
}

// Builder returns the builder for the options.
func (o *Options) Builder(a *app.App) (*desired.Builder, error) {
	if err := o.Hosts.Check(); err != nil {
		return nil, fmt.Errorf("invalid value of --allow-remote-bases: %w", err)
	}
	identity, cache := Identity(a), o.cache(a)
	return &desired.Builder{
		Options: o.Options, Cluster: Cluster(a), Warn: a.UI.Warning, Announce: a.UI.Action,
		Login: identity.Login, GitLogin: identity.GitCredentials,
		Charts:     func() (charts.Renderer, error) { return o.Charts(a) },
		ReadFile:   func(ctx context.Context, file string) ([]byte, error) { return app.ReadInput(ctx, a, file) },
		Clone:      openOnce,
		Kustomizer: isolated.NewKustomizer(a.Helpers, o.Hosts),
		Cache:      cache,
	}, nil
}

// openOnce returns a function that opens the clone of a work tree on its first call. The clone stays open
// until the process exits.
func openOnce(root string) func() (desired.Clone, error) {
	return sync.OnceValues(func() (desired.Clone, error) {
		opened, err := git.Open(root)
		return &clone.Contents{Clone: opened}, err
	})
}

// cache returns the rendering cache, or nil.
func (o *Options) cache(a *app.App) build.Cache {
	if kept := app.Renderings(a); kept != nil && !o.noCache {
		return kept
	}
	return nil
}

// Charts returns the chart renderer.
func (o *Options) Charts(a *app.App) (charts.Renderer, error) {
	renderer, err := isolated.CachedCharts(a.Helpers)
	if cache := o.cache(a); err == nil && cache != nil {
		return charts.Cached{Renderer: renderer, Cache: cache}, nil
	}
	return renderer, err
}

// Identity returns the client for credentials of cloud providers.
func Identity(a *app.App) *cloud.Client { return cloud.New(a.Helpers, a.Secrets.AddLogin) }

// Cluster returns the access to the cluster of the command.
func Cluster(a *app.App) desired.Cluster {
	return desired.Cluster{Connect: a.Client, FluxNamespace: a.FluxNamespace()}
}

// ReportChildren reports the error of each child Kustomization that failed to
// build.
func ReportChildren(a *app.App, err error) error {
	if err == nil {
		return nil
	}
	failures := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		failures = joined.Unwrap()
	}
	return app.ReportAll(a, failures, desired.ExplainChild)
}
