// Package root is the root command of flux: its commands, its global flags and
// its exit codes.
package root

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clusters"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/hint"
)

// NewRoot returns the root command with the subcommands that args require, or with all of them if
// args is empty.
func NewRoot(a *app.App, args []string) *cobra.Command {
	a.Commands = commandNames()
	root := &cobra.Command{
		Use:   "flux",
		Short: "Bootstrap, inspect and operate Flux",
		Long: `Install Flux on a Kubernetes cluster from a Git repository, and inspect and
operate it from a terminal or a pipeline.`,
		Example: `  # Check the prerequisites of a cluster
  flux check --pre

  # Bootstrap Flux from a Git repository
  flux bootstrap git --url=ssh://git@example.com/org/fleet --path=clusters/production

  # List all Flux resources and their status
  flux get all -A

  # Fetch the latest commit and apply it
  flux reconcile kustomization flux-system --with-source`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "success", clierr.ExitFailed: "failure, even for only one of several objects",
			clierr.ExitInterrupted: "interrupted by Ctrl-C or SIGTERM",
		}.Annotations(),
		Version:       a.Build.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			a.AddFlagSecrets(cmd, args)
			if app.PrintsCredentials(cmd) {
				a.Out = app.Unmasked(a.Out)
			}
			return applySettings(a, cmd)
		},
		Args: command.NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.Global.Add(root.PersistentFlags(), a.Env("FLUX_SYSTEM_NAMESPACE"))
	root.AddGroup(groups()...)
	root.SetHelpCommandGroupID(groupTools)
	help := newHelp()
	help.GroupID = groupTools
	root.SetHelpCommand(help)
	root.AddCommand(subcommands(a, args)...)
	root.SetFlagErrorFunc(command.FlagError)
	root.InitDefaultVersionFlag()
	setHelp(a, root)
	return root
}

// withoutSettings lists the commands that run despite invalid settings, because they send no
// requests to a cluster. version sends requests unless --client is set; it reports the error when
// it creates the client.
var withoutSettings = []string{"completion", "docgen", "envsubst", "help", "version"}

// applySettings sets the flags that are not on the command line from the
// environment and the configuration file.
func applySettings(a *app.App, cmd *cobra.Command) error {
	a.SettingsErr = config.Apply(cmd.Root().PersistentFlags(), a.Env)
	words := strings.Fields(cmd.CommandPath())
	switch {
	case len(words) == 1 || strings.HasPrefix(words[1], cobra.ShellCompRequestCmd):
		return nil
	case slices.Contains(withoutSettings, words[1]):
		if words[1] != "version" || a.SettingsErr != nil {
			return nil
		}
	case a.SettingsErr != nil:
		return a.SettingsErr
	case a.Global.Timeout <= 0:
		return hint.Errorf("use a duration such as 30s or 5m", "invalid --timeout %s: must be greater than 0", a.Global.Timeout)
	}
	return clusters.Select(a, cmd)
}
