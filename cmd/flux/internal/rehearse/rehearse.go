// Package rehearse implements the rehearse command.
package rehearse

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/sandbox/programs"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/rehearse"
	"github.com/fluxkit/flux/pkg/testrun"
)

type options struct {
	allowNetwork bool
	buildflags.Secrets
	inputs      buildflags.Inputs
	from, to    string
	path        string
	fromCluster bool
	format      string
}

// NewCommand returns the rehearse command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "rehearse",
		Short: "Rehearse an upgrade of Flux in temporary sandboxes",
		Long: `Rehearse an upgrade: run a repository with the current and the next version of
Flux in two sandboxes on this machine, and compare the results. The report lists
failures, required migrations and changes: conditions and inventories of Flux
resources, applied objects, warning events, rejected and removed fields, and
deprecated API versions.

Sources:
  The work tree replaces the remote repository, and the manifests of each
  version replace gotk-components.yaml. --from-cluster rehearses the Flux
  resources of the cluster instead, with stub values for Secrets; the cluster is
  not changed. See "flux help testing" for network access and Secrets.

Output:
  Resources that are not ready with either version are listed as not rehearsed.
  If the sandbox does not contain the controllers of the next version, the
  report lists them and the results that are therefore unknown.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "no differences were found; notices, suspended resources and missing controllers of the next version do not change the exit code",
			clierr.ExitFailed:       "a failure, a required migration or a change was found",
			clierr.ExitUndetermined: "undetermined: the rehearsal failed, the command line is invalid, or no differences were found but a resource could not be rehearsed",
		}.Annotations(),
		Example: `  # Rehearse the upgrade of the only cluster in the repository to the newest embedded version
  flux rehearse

  # Rehearse the upgrade of a cluster from Flux 2.9 to 2.10
  flux rehearse --path ./clusters/production --from 2.9 --to 2.10

  # Rehearse without the Secrets of the cluster
  flux rehearse --path ./clusters/production --fake-secrets

  # Write a comment for a pull request
  flux rehearse --to 2.10 --path ./clusters/production -o github

  # Rehearse the Flux resources of a cluster
  flux rehearse --from-cluster --to 2.10`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	fs := cmd.Flags()
	versions := strings.Join(controllers.EmbeddedVersions(), ", ")
	fs.StringVar(&o.to, "to", "", "next Flux version: "+versions+" (default "+controllers.Distributions[0].Version+")")
	fs.StringVar(&o.from, "from", "", "current Flux version (default: from gotk-components.yaml, the FluxInstance or the cluster)")
	fs.StringVar(&o.path, "path", "", "cluster directory in the repository (default: the only detected one)")
	fs.BoolVar(&o.fromCluster, "from-cluster", false, "rehearse the Flux resources of the cluster instead of a repository")
	fs.BoolVar(&o.allowNetwork, "allow-network", false, "allow the controllers to connect to other hosts and to all local services; only for trusted repositories")
	o.inputs.Add(cmd)
	o.AddFakeSecrets(fs)
	o.AddAgeKey(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	command.AddOutput(fs, &o.format, "format of the report", formats...)
	command.CompleteEmbeddedVersion(cmd, "from")
	command.CompleteEmbeddedVersion(cmd, "to")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	r, err := o.rehearsal(ctx, a)
	if err != nil {
		return err
	}
	if o.fromCluster {
		err = exported(ctx, a, r)
	} else {
		var done func() error
		r.Input.Repository, done, err = testrun.Open(ctx, o.path, "")
		defer func() { _ = done() }() // read-only
	}
	if err != nil {
		return err
	}
	if r.Input.Program, err = programs.Find(a.Build.Version); err != nil {
		return err
	}
	progress, end := progressOf(a)
	r.Progress = progress
	report, err := r.Run(ctx)
	end()
	if err != nil {
		return err
	}
	if err := write(a, o.format, report); err != nil {
		return err
	}
	return exitError(a, report)
}

// exitError returns the error that sets the exit code for a report.
func exitError(a *app.App, report *rehearse.Report) error {
	switch report.Result {
	case rehearse.Different:
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	case rehearse.Undetermined:
		a.UI.Failure("the upgrade could not be rehearsed completely")
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	return nil
}

// rehearsal returns the rehearsal of the selected versions.
func (o *options) rehearsal(ctx context.Context, a *app.App) (*rehearse.Rehearsal, error) {
	for _, flag := range []struct {
		name string
		set  bool
	}{{"path", o.path != ""}, {"inputs", o.inputs != nil}, {"fake-secrets", o.FakeSecrets}, {"age-key-file", o.AgeKeyFile != ""}} {
		if o.fromCluster && flag.set {
			return nil, hint.Errorf("omit one of them", "--from-cluster and --%s are mutually exclusive", flag.name)
		}
	}
	to := controllers.Distributions[0]
	var err error
	if o.to != "" {
		if to, err = command.EmbeddedVersion("--to", o.to); err != nil {
			return nil, err
		}
	}
	r := &rehearse.Rehearsal{
		To: to, Input: testrun.Run{Now: a.Now, FakeSecrets: o.FakeSecrets, AllowNetwork: o.allowNetwork, Kustomizer: isolated.NewKustomizer(a.Helpers, nil)},
	}
	if r.Input.Inputs, err = o.inputs.Read(ctx, a); err != nil {
		return nil, err
	}
	if !o.fromCluster { // which has stubs
		if r.Input.AgeKey, err = o.AgeKey(a); err != nil {
			return nil, err
		}
	}
	if o.from != "" {
		from, err := command.EmbeddedVersion("--from", o.from)
		if err != nil {
			return nil, err
		}
		r.From = &from
	}
	return r, nil
}

// progressOf reports each step of both versions: on a terminal in one line, else once.
func progressOf(a *app.App) (progress func(version, step string), end func()) {
	line := a.UI.Progress(a.Now, "rehearsing")
	var mu sync.Mutex
	steps := map[string]string{}
	var order []string
	return func(version, step string) {
		mu.Lock()
		defer mu.Unlock()
		if steps[version] == "" {
			order = append(order, version)
		}
		before, _, _ := strings.Cut(steps[version], ":")
		if now, _, _ := strings.Cut(step, ":"); now != before {
			a.UI.Waiting("Flux %s: %s", version, now)
		}
		steps[version] = step
		var parts []string
		for _, v := range order {
			parts = append(parts, "Flux "+v+": "+steps[v])
		}
		line.Set("%s", strings.Join(parts, ", "))
	}, line.Done
}

var errNoObjects = errors.New("the cluster has no Flux resources to rehearse")
