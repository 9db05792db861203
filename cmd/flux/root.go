package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/config"
)

// version is the version of this command-line tool, set by the build; the
// Flux that it installs has a version of its own (controllers.Distribution).
var version = "0.0.0-dev" //nolint:gochecknoglobals // the linker needs a variable

// commit and date are the Git commit that this tool was built from and its time
// in RFC 3339, set by the build; empty where that is not known.
var commit, date string //nolint:gochecknoglobals // the linker needs variables

// newRoot makes the commands that a command line needs, all of them for none.
func newRoot(a *app, args []string) *cobra.Command {
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
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			a.learnFlags(cmd, args)
			if printsCredentials(cmd) {
				a.out = unmasked(a.out)
			}
			return a.applySettings(cmd)
		},
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.global.add(root.PersistentFlags(), a.env("FLUX_SYSTEM_NAMESPACE"))
	root.AddCommand(needed(a, args)...)
	root.InitDefaultVersionFlag()
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd == root {
			a.addPlugins(cmd.Context(), root)
		}
		help(cmd, args)
	})
	return root
}

// withoutSettings are the commands that neither ask a cluster nor take time:
// what is wrong with the settings of others does not keep them from working.
// version asks a cluster without --client, and gets the error with it.
var withoutSettings = []string{"completion", "docgen", "envsubst", "help", "version"}

// applySettings fills the flags that were not given from the environment and the
// configuration file.
func (a *app) applySettings(cmd *cobra.Command) error {
	a.settings = config.Apply(cmd.Root().PersistentFlags(), a.env)
	words := strings.Fields(cmd.CommandPath())
	if len(words) == 1 || slices.Contains(withoutSettings, words[1]) || strings.HasPrefix(words[1], cobra.ShellCompRequestCmd) {
		return nil
	}
	return a.settings
}

// noSubcommand refuses words below a command that only holds others.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := nearestCommand(cmd, args[0]); near != "" {
		return &hintedError{err, fmt.Sprintf("did you mean '%s'?", near)}
	}
	return &hintedError{err, fmt.Sprintf("run '%s --help' to see its commands", cmd.CommandPath())}
}

// group returns a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return usage(cmd, "a command is required") },
	}
	cmd.AddCommand(children...)
	return cmd
}

// usageError says that a command line lacks words that the command needs.
type usageError struct {
	cmd     *cobra.Command
	message string
}

func (e *usageError) Error() string { return e.cmd.CommandPath() + ": " + e.message }

// usage returns the error that shows how a command is used.
func usage(cmd *cobra.Command, message string) error { return &usageError{cmd, message} }

// shortUsage is how a command is used, without the flags that all commands have.
func shortUsage(cmd *cobra.Command) string {
	text := cmd.UsageString()
	if start := strings.Index(text, "\nGlobal Flags:"); start >= 0 {
		length := strings.Index(text[start:], "\n\n")
		if length < 0 {
			return strings.TrimSpace(text[:start]) + "\n"
		}
		text = text[:start] + text[start+length+1:]
	}
	return strings.TrimSpace(text) + "\n"
}
