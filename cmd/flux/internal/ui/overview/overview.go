// Package overview defines the command line of the dashboard, and prints the overview of a cluster.
package overview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clusters"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/kubeconfig"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/live"
)

// Options are the flags of the dashboard.
type Options struct {
	// Once prints the overview in Format instead of starting the dashboard.
	Once   bool
	Format string
	// ReadOnly disables all actions.
	ReadOnly bool
}

// NewCommand returns the ui command. start runs the dashboard.
func NewCommand(a *app.App, start func(*cobra.Command, Options) error) *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show and operate all resources in a dashboard",
		Long: `Show all Flux resources in a live list in the terminal. Resources that are not
ready are grouped by their root cause and listed first. Enter shows the cause,
tree, diff, events, logs, YAML and history of a resource. Keys reconcile,
suspend, resume and delete resources after a confirmation; "?" lists all keys.

Selection:
  All namespaces are shown, or with -n one or several, separated by commas.
  --context selects one or several clusters: see "flux help clusters".
  Kinds that you have no permission to list are reported.

Output:
  --once prints the overview and exits. It is required without a terminal.
  If the dashboard was killed with SIGKILL, "reset" restores the terminal.

Guardrails:
  The configuration file can disable the actions for some clusters, or require
  the name of the cluster for each action. See "flux help environment".`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "the dashboard was closed; with --once: all resources are ready, suspended or being reconciled",
			clierr.ExitFailed:       "with --once: a resource or controller has failed, or a failed resource blocks another one",
			clierr.ExitUndetermined: "undetermined: the cluster or a kind could not be read, or the command line is invalid",
		}.Annotations(),
		Example: `  # Open the dashboard
  flux ui

  # Show two namespaces, without actions
  flux ui -n apps,infra --read-only

  # Show all production clusters
  flux ui --context 'prod-*'

  # Print the overview
  flux ui --once

  # Print the names of failed resources
  flux ui --once -o json | jq -r '.resources[] | select(.state == "Failed") | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Once {
				return a.Interruptible(cmd, func() error { return once(a, cmd, o) })
			}
			switch {
			case o.Format != "":
				return hint.Errorf("add --once", "--output requires --once")
			case !ui.IsTerminal(a.In) || !ui.IsTerminal(a.Out) || a.Env("TERM") == "dumb":
				return hint.Errorf("print the overview: flux ui --once", "the dashboard requires a terminal")
			}
			return start(cmd, o)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.Once, "once", false, "print the overview and exit")
	fs.BoolVar(&o.ReadOnly, "read-only", false, "disable all actions that change resources")
	command.AddOutput(fs, &o.Format, "with --once, output format", "json", "yaml")
	return cmd
}

// Flags returns the set flags, except those that skip selects.
func Flags(fs *pflag.FlagSet, skip func(*pflag.Flag) bool) []string {
	var args []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || skip != nil && skip(f) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

// Site is a cluster of the dashboard, and the flags that select it.
type Site struct {
	*live.Cluster
	Kube *kubeconfig.Flags
}

// Open connects to the clusters of the selected contexts. Their objects are not read yet.
func Open(a *app.App, cmd *cobra.Command) ([]Site, error) {
	var all []string
	for _, namespace := range strings.Split(a.Global.Namespace, ",") {
		if !cmd.Flags().Changed("namespace") {
			break // all namespaces
		}
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return nil, fmt.Errorf("invalid namespace %q: must be an RFC 1123 label: at most 63 lower-case letters, digits and '-'", namespace)
		}
		if !slices.Contains(all, namespace) {
			all = append(all, namespace)
		}
	}
	selection, contexts := "", []string{""}
	if f := cmd.Flags().Lookup("context"); f != nil && f.Value.String() != "" {
		selection = f.Value.String()
		var err error
		if contexts, err = clusters.Contexts(a, selection); err != nil {
			return nil, err
		}
	}
	sites := make([]Site, len(contexts))
	for i, context := range contexts {
		name, flags, connect := "", a.Global.Kube, a.Client
		if context != selection {
			flags, connect = flags.InContext(context), func() (*kube.Client, error) { return app.ClientIn(a, context) }
		}
		client, err := connect()
		if err != nil {
			return nil, err
		}
		if len(contexts) > 1 {
			name = context
		}
		sites[i] = Site{live.New(name, report.Diagnoser(a, client), all, a.Now), flags}
	}
	return sites, nil
}
