// Package version implements the version command.
package version

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	client   bool
	embedded bool
	format   string
}

// NewCommand returns the version command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{format: "yaml"}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of flux and of Flux on the cluster",
		Long: `Show the version of this tool, and of Flux and its controllers on the cluster.
The tool embeds Flux ` + strings.Join(controllers.EmbeddedVersions(), ", ") + `, and installs ` + controllers.DefaultVersion + ` by default.

Output:
  --client -o json includes the Git commit that the tool was built from, the
  time of this commit, and the Go version. --embedded lists the embedded Flux
  versions with the oldest supported Kubernetes patch versions and the versions
  of the controllers.`,
		Example: `  # Show the versions of this tool and of Flux on the cluster
  flux version

  # Show the version of this tool without access to a cluster
  flux version --client

  # List the versions of Flux that can be installed without access to its releases
  flux version --embedded -o json | jq -r '.[].version'

  # Show the commit that this tool was built from
  flux version --client -o json | jq -r .commit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(a, cmd, o) },
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "show the version of this tool only")
	cmd.Flags().BoolVar(&o.embedded, "embedded", false, "list the embedded versions of Flux")
	command.AddOutput(cmd.Flags(), &o.format, "output format", "yaml", "json")
	return cmd
}

// entry is a line of the output.
type entry struct{ name, version string }

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if o.embedded {
		return a.Encode(o.format, embedded())
	}
	entries := []entry{{"flux", "v" + strings.TrimPrefix(a.Build.Version, "v")}}
	if o.client && o.format == "json" && a.Build.Commit != "" {
		// YAML omits these entries, because scripts for Flux 2.9 treat every key next to the
		// controllers as a component.
		entries = append(entries, entry{"commit", a.Build.Commit}, entry{"date", a.Build.Date}, entry{"go", runtime.Version()})
	}
	if o.client {
		return printVersions(a, o.format, entries)
	}
	installed, failed := installedVersions(a, cmd)
	// The client version is also printed without a cluster.
	if err := printVersions(a, o.format, append(entries, installed...)); err != nil {
		return err
	}
	return failed
}

// distribution is an embedded version of Flux in JSON and YAML.
type distribution struct {
	Version string `json:"version"`
	Default bool   `json:"default"`
	// Kubernetes lists the oldest supported patch version of each minor version.
	Kubernetes  []string          `json:"kubernetes"`
	Controllers map[string]string `json:"controllers"`
}

func embedded() []distribution {
	var all []distribution
	for _, d := range controllers.Distributions {
		all = append(all, distribution{"v" + d.Version, d.Version == controllers.DefaultVersion, d.Kubernetes, d.Tags})
	}
	return all
}

func installedVersions(a *app.App, cmd *cobra.Command) ([]entry, error) {
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	return clusterVersions(ctx, client, namespace)
}

// clusterVersions reads the versions from the Deployments, whose labels contain the distribution
// version.
func clusterVersions(ctx context.Context, client *kube.Client, namespace string) ([]entry, error) {
	installed, err := kube.InstalledVersions(ctx, client, namespace)
	if err != nil {
		return nil, fmt.Errorf("listing the controllers in namespace %q: %w", namespace, err)
	}
	if len(installed.Controllers) == 0 {
		return nil, notInstalled(ctx, client, namespace)
	}
	var entries []entry
	if installed.Flux != "" {
		entries = append(entries, entry{"distribution", "flux-" + installed.Flux})
	}
	for _, name := range slices.Sorted(maps.Keys(installed.Controllers)) {
		entries = append(entries, entry{name, installed.Controllers[name]})
	}
	return entries, nil
}

// notInstalled returns an error that suggests the namespace in which Flux is installed.
func notInstalled(ctx context.Context, client *kube.Client, namespace string) error {
	remedy := "install it with 'flux install'; 'flux version --client' does not require a cluster"
	// Without permission to list CRDs, the general hint is printed.
	if crd, err := client.Find(ctx, kube.CRDs(), kube.InstalledCRD); err == nil {
		remedy = cmp.Or(installflags.ElsewhereHint(crd, namespace), remedy)
	}
	return hint.Errorf(remedy, "no Flux controllers found in namespace %q", namespace)
}

func printVersions(a *app.App, format string, entries []entry) error {
	if format == "json" {
		fields := map[string]string{}
		for _, e := range entries {
			fields[e.name] = e.version
		}
		text, err := json.MarshalIndent(fields, "", "  ")
		if err != nil {
			return err
		}
		return a.Printf("%s\n", text)
	}
	for _, e := range entries {
		line, err := yaml.Marshal(map[string]string{e.name: e.version})
		if err != nil {
			return err
		}
		if err := a.Printf("%s", line); err != nil {
			return err
		}
	}
	return nil
}
