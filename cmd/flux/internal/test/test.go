// Package test implements the test command.
package test

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/mapflags"
	"github.com/fluxkit/flux/cmd/flux/internal/test/render"
	"github.com/fluxkit/flux/cmd/flux/internal/test/vendor"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/internal/sandbox/programs"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/suite"
)

type options struct {
	vendor.Options
	mapped       mapflags.Flags
	inputs       buildflags.Inputs
	allowNetwork bool
	// fluxVersion is the version of Flux, "" for that of the repository.
	fluxVersion string
	// outputs are the report formats; the default is human on standard output.
	outputs []command.Output
}

// completeFiles completes the names of test files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
}

// NewCommand returns the test command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "test [FILE...]",
		Short: "Test a repository with the Flux controllers in a temporary sandbox",
		Long: `Test a repository: the Flux controllers reconcile the cluster directory in a
temporary sandbox on this machine until all objects are ready or make no more
progress. No cluster and no containers are required; see "flux help testing".

Sources:
  The work tree, or --revision, replaces the remote repository. The sandbox has
  no network unless --allow-network is set: use --map or --vendor for sources,
  --fake-secrets or --age-key-file for Secrets, and --inputs for ResourceSets.

Output:
  The report lists the Flux resources in the order in which they became ready,
  root causes, objects with two owners or in no inventory, and API server
  warnings, such as deprecations. With --base, it also has a timeline of the
  changes. Test files (*.fluxtest.yaml) run after the first reconciliation;
  --timeout limits only the first reconciliation.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "all Flux resources are ready and all assertions hold; suspended resources, their missing Secrets, warnings and orphaned objects do not change the exit code",
			clierr.ExitFailed:       "a resource is not ready, an assertion fails, or two owners apply an object with different contents",
			clierr.ExitUndetermined: "undetermined: the sandbox did not start, the command line is invalid, --timeout ended the reconciliation, or resources apply to another cluster or require inputs from outside of the sandbox",
		}.Annotations(),
		Example: `  # Test the only cluster in the repository
  flux test

  # Test a cluster at a commit, with charts and artifacts from directories
  flux test --path clusters/production --revision HEAD --map https://charts.example.com=./charts --map oci://ghcr.io/acme/apps=./apps

  # Test a pull request as an upgrade from main
  flux test --path clusters/production --base origin/main

  # Fetch all sources, then test without a network
  flux test vendor
  flux test --vendor .fluxtest

  # Test without the Secrets of the cluster
  flux test --path clusters/production --fake-secrets

  # Run one file with assertions
  flux test --path clusters/production tests/rollout.fluxtest.yaml

  # Print the report, and write it for a CI system
  flux test --path clusters/production -o human -o junit=flux-test.xml`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, args) },
	}
	fs := cmd.Flags()
	o.AddRevisions(cmd, "revision to test: branch, tag or commit (default: the work tree)", "revision to reconcile first: branch, tag or commit")
	o.mapped.Add(cmd)
	o.inputs.Add(cmd)
	o.AddFakeSecrets(fs)
	o.AddAgeKey(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	fs.BoolVar(&o.allowNetwork, "allow-network", false, "allow the controllers to connect to other hosts and to all local services; only for trusted repositories")
	fs.StringVar(&o.fluxVersion, "flux-version", "", "Flux version: "+strings.Join(controllers.EmbeddedVersions(), ", ")+" (default: that in gotk-components.yaml or the FluxInstance)")
	command.CompleteEmbeddedVersion(cmd, "flux-version")
	fs.VarP(command.Outputs{List: &o.outputs, Allowed: render.Formats()}, "output", "o",
		"format of the report, or FORMAT=FILE; repeat it for several: "+strings.Join(render.Formats(), ", "))
	cmd.AddCommand(vendor.NewCommand(a))
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, files []string) error {
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	r, err := o.newRun(ctx, a)
	if err != nil {
		return err
	}
	head, base, done, err := o.Repositories(ctx)
	defer func() { _ = done() }() // read-only
	if err != nil {
		return err
	}
	r.Repository = head
	if base != nil {
		r.Repository, r.Head, r.Base = base, head, o.Base
	}
	if o.fluxVersion == "" {
		r.Distribution, err = head.Distribution()
	}
	if err != nil {
		return err
	}
	if o.mapped.Vendor != "" {
		if err := o.Serve(ctx, a, o.mapped.Vendor, r); err != nil {
			return err
		}
	}
	evaluator := expression.New(a.Helpers)
	tests, err := suite.Read(ctx, evaluator, head.Tree, files)
	if err != nil {
		return err
	}
	s, err := suite.New(cmd.Context(), evaluator, r, tests)
	if err != nil {
		return err
	}
	report, err := report(ctx, cmd.Context(), a, r, s)
	if report == nil {
		return err
	}
	if err := render.Write(a, o.outputs, report); err != nil {
		return err
	}
	concluded := render.Conclude(a, report)
	if concluded == nil || err == nil {
		return cmp.Or(concluded, err)
	}
	a.Report(err) // the sandbox has not stopped
	return concluded
}

// newRun returns the run without its repository.
func (o *options) newRun(ctx context.Context, a *app.App) (*testrun.Run, error) {
	r := &testrun.Run{
		FakeSecrets: o.FakeSecrets, AllowNetwork: o.allowNetwork, Now: a.Now, Kustomizer: isolated.NewKustomizer(a.Helpers, nil),
	}
	var err error
	if r.Distribution, err = command.EmbeddedVersion("--flux-version", o.fluxVersion); err != nil {
		return nil, err
	}
	if r.Mappings, err = o.mapped.Given(); err != nil {
		return nil, err
	}
	if r.Inputs, err = o.inputs.Read(ctx, a); err != nil {
		return nil, err
	}
	if r.AgeKey, err = o.AgeKey(a); err != nil {
		return nil, err
	}
	r.Program, err = programs.Find(a.Build.Version)
	return r, err
}

// report runs the sandbox and the tests, and shows the steps: on one line on a terminal, else once each. ctx
// limits the first reconciliation, testContext limits the tests.
func report(ctx, testContext context.Context, a *app.App, r *testrun.Run, s *suite.Suite) (report *examine.Report, err error) {
	line := a.UI.Progress(a.Now, "testing")
	defer line.Done()
	last := ""
	r.Progress = func(step string) {
		now, _, _ := strings.Cut(step, ":")
		if now != last {
			a.UI.Waiting("%s", now)
		}
		last = now
		line.Set("%s", step)
	}
	defer func() { err = errors.Join(err, s.Close(), r.Close()) }()
	if err := r.Run(ctx); err != nil {
		if over := context.Cause(ctx); over != nil && !errors.Is(err, over) {
			err = over
		}
		return nil, err
	}
	if report, err = examine.Run(testContext, r); err != nil {
		return nil, err
	}
	results, err := s.Run(testContext, r)
	if err != nil {
		return nil, err
	}
	report.AddTests(results)
	return report, nil
}
