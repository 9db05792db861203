// Package rehearse implements the rehearse command.
package rehearse

import (
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
		Long: `Rehearse an upgrade of Flux: run a repository through the present and the next
version of Flux in two sandboxes on this machine, and compare the results. The
report lists what breaks, what to migrate first, and what changes: the
conditions and inventories of Flux resources, the applied objects, warning
events, rejected and removed fields, and deprecated API versions.

The working tree is served in place of the remote repository, and
gotk-components.yaml is replaced by the manifests of each version. Alerts and
image updates are suspended, and Kustomizations and HelmReleases for other
clusters are not applied, so that nothing outside of the sandboxes is changed.
With --allow-network, other sources are fetched as in a cluster, without
credentials that are not in the repository; without it, the sandboxes have no
network. What is not ready with either version is listed as not rehearsed.

With --fake-secrets, Secrets and ConfigMaps that are not in the repository are
created with generated values, and documents that SOPS has encrypted are served
with stub values, which are the same with both versions. With --age-key-file, or the
variables SOPS_AGE_KEY and SOPS_AGE_KEY_FILE, kustomize-controller decrypts them.

With --from-cluster, the Flux resources of the cluster in the kubeconfig are
rehearsed instead of a repository, with stub values for the Secrets. The cluster
is only read.

The sandboxes run the controllers that were built with flux-sandbox. The report
lists controllers that do not have the version of the next Flux, and what is
unknown because of it. The sandboxes need 2 GiB of memory; they are removed at
the end, also after Ctrl-C.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "nothing differs between the two versions of Flux; notices, suspended resources, and controllers that did not run in the " +
				"version of the next Flux do not change the exit code",
			clierr.ExitFailed: "something breaks, has to be migrated or changes",
			clierr.ExitUndetermined: "the rehearsal failed, the command line is invalid, or nothing differs but something could not be rehearsed, such as a " +
				"source that is not ready with either version",
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
	fs.StringVar(&o.to, "to", "", "next version of Flux: "+versions+" (default "+controllers.Distributions[0].Version+")")
	fs.StringVar(&o.from, "from", "", "present version of Flux (default: that of gotk-components.yaml or of the cluster)")
	fs.StringVar(&o.path, "path", "", "directory of the cluster in its repository (default: the only one with gotk-sync.yaml)")
	fs.BoolVar(&o.fromCluster, "from-cluster", false, "rehearse the Flux resources of the cluster instead of a repository")
	fs.BoolVar(&o.allowNetwork, "allow-network", false, "allow the controllers to connect to other hosts and to all local services; only for trusted repositories")
	o.AddFakeSecrets(fs)
	o.AddAgeKey(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	command.AddOutput(fs, &o.format, "format of the report", formats...)
	command.CompleteEmbeddedVersion(cmd, "from")
	command.CompleteEmbeddedVersion(cmd, "to")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	r, err := o.rehearsal(a)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
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
	return verdict(a, report)
}

// verdict returns the exit code of a report.
func verdict(a *app.App, report *rehearse.Report) error {
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
func (o *options) rehearsal(a *app.App) (*rehearse.Rehearsal, error) {
	for _, flag := range []struct {
		name string
		set  bool
	}{{"path", o.path != ""}, {"fake-secrets", o.FakeSecrets}, {"age-key-file", o.AgeKeyFile != ""}} {
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
