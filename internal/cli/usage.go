package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
)

// usage writes the usage of a command as cobra does, with two differences: flags that
// a command inherits from its verb are listed with its own, and the global flags, 30
// lines of each help, are replaced by a reference to the command that lists them.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\n\nAliases:\n  " + cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	writeCommands(&b, cmd)
	if flags := ownFlags(cmd).FlagUsages(); flags != "" && cmd.HasParent() {
		b.WriteString("\n\nFlags:\n" + strings.TrimRight(flags, "\n"))
	}
	b.WriteString("\n\nUse \"flux options\" for the global flags, such as --context, --namespace and --timeout.\n")
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nUse \"" + cmd.CommandPath() + " [command] --help\" for more information about a command.\n")
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// writeCommands writes the commands below a command by group.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	sections := append(cmd.Groups(), &cobra.Group{Title: "Available Commands:"})
	for _, group := range sections {
		title := "\n\n" + group.Title
		for _, c := range cmd.Commands() {
			if c.GroupID == group.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				fmt.Fprintf(b, "%s\n  %-*s %s", title, c.NamePadding(), c.Name(), c.Short)
				title = ""
			}
		}
	}
}

// ownFlags returns the flags of a command that not all commands have.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(flags.AddFlag)
	global := cmd.Root().PersistentFlags()
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if global.Lookup(f.Name) == nil {
			flags.AddFlag(f)
		}
	})
	return flags
}

// shortUsage returns the usage of a command for an error.
func shortUsage(cmd *cobra.Command) string {
	return strings.TrimSpace(cmd.UsageString()) + "\n"
}

// newOptions returns the command options.
func newOptions(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the global flags",
		Long: `List the flags that all commands have. Flags that are not given on the command
line are set from FLUX_* environment variables, such as FLUX_TIMEOUT, and from
the configuration file.`,
		Example: `  # List the global flags
  flux options`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Printf("%s", cmd.Root().PersistentFlags().FlagUsages())
		},
	}
}
