// Package vendor implements the test vendor command.
package vendor

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/mapflags"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/repository/upstream"
	"github.com/fluxkit/flux/pkg/testrun/sources"
	"github.com/fluxkit/flux/pkg/testrun/vendored"
)

// NewCommand returns the test vendor command.
func NewCommand(a *app.App) *cobra.Command {
	o, access, format := &Options{}, &buildflags.Options{}, "human"
	cmd := &cobra.Command{
		Use:   "vendor [DIR]",
		Short: "Fetch the sources of a repository, to test it without a network",
		Long: `Fetch every external source that a cluster repository references: other Git
repositories, OCI artifacts, buckets, and the charts of HelmReleases, including
missing dependencies of charts in Git. "flux test --vendor DIR" then uses the
directory (default ` + mapped.VendorFolder + `) without network access.

Sources:
  The command builds the Kustomizations of the cluster to find the sources, and
  fetches them with the credentials in the repository or of "docker login", or
  with the identity of --provider. Unchanged sources are not fetched again, and
  unreferenced sources are removed. If a source cannot be fetched, the directory
  is not changed. Buckets of Azure and Google Cloud, and sources that charts
  create, are not fetched.

Output:
  The directory has an index of URLs, revisions and digests. JSON and YAML have
  the fields directory, sources (kind, url, ref, chart, version, revision, file,
  and action: fetched, kept or removed) and incomplete.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "the directory contains all sources",
			clierr.ExitFailed:       "some sources have a kind that cannot be fetched",
			clierr.ExitUndetermined: "fetching failed, or the command line is invalid",
		}.Annotations(),
		Example: `  # Fetch the sources of the only cluster into .fluxtest
  flux test vendor

  # Fetch the sources of a cluster in the work tree and on main, for a test with --base
  flux test vendor vendored --path clusters/production --base origin/main
  flux test --vendor vendored --path clusters/production --base origin/main`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: mapflags.CompleteDirectories,
		RunE:              func(cmd *cobra.Command, args []string) error { return runVendor(a, cmd, o, access, format, args) },
	}
	fs := cmd.Flags()
	o.AddRevisions(cmd, "revision to fetch sources for: branch, tag or commit (default: the work tree)", "additional revision to fetch sources for: branch, tag or commit")
	o.AddAgeKey(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	access.AddProvider(fs, "sources")
	command.AddOutput(fs, &format, "format of the result", "human", "json", "yaml")
	return cmd
}

func runVendor(a *app.App, cmd *cobra.Command, o *Options, access *buildflags.Options, format string, args []string) error {
	folder := mapped.VendorFolder
	if len(args) > 0 {
		folder = args[0]
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	head, base, done, err := o.Repositories(ctx)
	defer func() { _ = done() }() // read-only
	if err != nil {
		return err
	}
	repositories := []*sources.Repository{head}
	if base != nil {
		repositories = append(repositories, base)
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
	if format != "human" {
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
