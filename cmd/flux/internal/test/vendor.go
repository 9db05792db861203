package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/repository/upstream"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/vendored"
)

func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// newVendor returns the command that fetches sources.
func newVendor(a *app.App) *cobra.Command {
	o, access, format := &options{}, &buildflags.Options{}, human
	cmd := &cobra.Command{
		Use:   "vendor [DIR]",
		Short: "Fetch the sources of a repository, to test it without a network",
		Long: `Fetch what the repository of a cluster refers to: other Git repositories, OCI
artifacts, buckets, and the charts that its HelmReleases resolve to, with the
dependencies that charts in Git lack. They are written to a folder (default ` + testrun.VendorFolder + `)
with an index of URLs, revisions and digests, for 'flux test --vendor DIR'.

Sources are found by building the Kustomizations of the cluster, and fetched with
the credentials in the repository, those of 'docker login', or, with --provider,
the identity in the environment. What has not changed is not fetched again, and
what is no longer referenced is removed. If a source cannot be fetched, the folder
remains as it is.

Buckets of Azure and Google Cloud, and sources that are created by charts, are not
fetched.

JSON and YAML have the fields folder, sources (kind, url, ref, chart, version,
revision, file, and action: fetched, kept or removed) and incomplete.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "the directory contains all sources",
			clierr.ExitFailed:       "some sources are of a kind that is not fetched",
			clierr.ExitUndetermined: "fetching failed, or the command line is invalid",
		}.Annotations(),
		Example: `  # Fetch the sources of the only cluster into .fluxtest
  flux test vendor

  # Fetch the sources of a cluster, also those that main uses, for a test with --base
  flux test vendor vendored --path clusters/production --base origin/main
  flux test --vendor vendored --path clusters/production --base origin/main`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return runVendor(a, cmd, o, access, format, args) },
	}
	fs := cmd.Flags()
	o.addRevisions(cmd, "revision whose sources are fetched: branch, tag or commit (default: the work tree)", "revision whose sources are fetched too: branch, tag or commit")
	o.AddAgeKey(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	access.AddProvider(fs, "sources")
	command.AddOutput(fs, &format, "format of the result", human, "json", "yaml")
	return cmd
}

func runVendor(a *app.App, cmd *cobra.Command, o *options, access *buildflags.Options, format string, args []string) error {
	folder := testrun.VendorFolder
	if len(args) > 0 {
		folder = args[0]
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	repositories, done, err := o.repositories(ctx)
	defer func() { _ = done() }() // read-only
	if err != nil {
		return err
	}
	options, err := o.building(a)
	if err != nil {
		return err
	}
	builder, err := access.Builder(a)
	if err != nil {
		return err
	}
	line := a.UI.Progress(a.Now, "fetching")
	f := &vendored.Fetcher{
		Options: options, Login: builder.Login.For(access.Provider), Git: upstream.GitAccess{Provider: access.Provider, Login: builder.GitLogin},
		Progress: func(step string) { line.Set("%s", step) },
		Buckets:  buildflags.Identity(a).Bucket,
		Charts:   func(folder string) vendored.ClosingFetcher { return isolated.NewCharts(a.Helpers, folder) },
	}
	result, err := f.Fetch(ctx, folder, repositories...)
	line.Done()
	if err != nil {
		return err
	}
	if err := writeVendored(a, format, result); err != nil {
		return err
	}
	for _, text := range result.Incomplete {
		a.UI.Warning("%s", printable.Line(text))
	}
	summary := fmt.Sprintf("%d fetched, %d kept, %d removed in %s", result.Count(vendored.Fetched), result.Count(vendored.Kept), result.Count(vendored.Removed), printable.Line(folder))
	if n := len(result.Incomplete); n > 0 {
		a.UI.Failure("%s; %s not fetched", summary, output.Amount(n, "source"))
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	a.UI.Success("%s", summary)
	return nil
}

func writeVendored(a *app.App, format string, r *vendored.Result) error {
	if format != human {
		return a.Encode(format, r)
	}
	var b strings.Builder
	for _, s := range r.Sources {
		fmt.Fprintf(&b, "%-7s  %s", s.Action, printable.Line(s.String()))
		if s.Revision != "" {
			b.WriteString(": " + printable.Line(s.Revision))
		}
		b.WriteString("\n")
	}
	return app.WriteText(a, b.String())
}

// repositories reads the revision, and the base if there is one.
func (o *options) repositories(ctx context.Context) ([]*testrun.Repository, func() error, error) {
	head, done, err := load(ctx, o.path, o.revision)
	if err != nil || o.base == "" {
		return []*testrun.Repository{head}, done, err
	}
	base, closeBase, err := load(ctx, o.path, o.base)
	if err != nil {
		err = fmt.Errorf("the base %s: %w", o.base, err)
	}
	return []*testrun.Repository{head, base}, func() error { return errors.Join(done(), closeBase()) }, err
}

// building returns the options for building Kustomizations with the keys of the user.
func (o *options) building(a *app.App) (build.Options, error) {
	if _, err := o.AgeKey(a); err != nil {
		return build.Options{}, err
	}
	decryption := buildflags.Decryption(a)
	decryption.Env = func(name string) string {
		if name == "SOPS_AGE_KEY_FILE" && o.AgeKeyFile != "" {
			return o.AgeKeyFile
		}
		return a.Env(name)
	}
	return build.Options{Kustomizer: isolated.NewKustomizer(a.Helpers, nil), Decrypt: func(*unstructured.Unstructured, build.Lookup) build.Decrypter {
		if o.Untrusted {
			return build.Untrusted{}
		}
		return decryption.Decrypter(build.FromObjects(nil))
	}}, nil
}

// useVendored serves the sources in the folder of --vendor, unless --map serves others in their place.
func (o *options) useVendored(ctx context.Context, a *app.App, r *testrun.Run) (err error) {
	if o.vendor == "" {
		return nil
	}
	folder, err := vendored.Open(o.vendor)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	given := r.Mappings
	serves := func(kind, url string) bool {
		return slices.ContainsFunc(given, func(m testrun.Mapping) bool { return m.Serves(ctx, kind, url) })
	}
	options, err := o.building(a)
	if err != nil {
		return err
	}
	for _, repository := range []*testrun.Repository{r.Repository, r.Head} {
		if repository != nil {
			if err := folder.Prepare(ctx, repository, options, serves); err != nil {
				return err
			}
		}
	}
	r.Mappings = append(given, folder.Mappings(serves)...)
	return nil
}
