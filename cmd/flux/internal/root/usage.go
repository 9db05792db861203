package root

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/plugin"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// helpWidth is the width of help that is not printed on a terminal.
const helpWidth = 80

// setHelp sets the help and usage functions of the root command, which its
// subcommands inherit.
func setHelp(a *app.App, root *cobra.Command) {
	width := func() int { return cmp.Or(ui.Columns(a.Out, a.Env), helpWidth) }
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd, width()))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if cmd == root {
			plugin.AddCommands(cmd.Context(), a, root)
		}
		text := wrapped(cmp.Or(cmd.Long, cmd.Short), width()) + "\n"
		if exits := command.ExitHelp(cmd, width()); exits != "" {
			text += "\n" + exits
		}
		if !isTopic(cmd) {
			text += "\n" + usage(cmd, width())
		}
		_, _ = io.WriteString(cmd.OutOrStdout(), text) // cobra's help functions return no error
	})
}

// wrapped wraps the paragraphs of a text that are wider than width. Indented
// lines are kept.
func wrapped(text string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		lines := strings.Split(p, "\n")
		if slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, " ") }) {
			continue
		}
		if slices.ContainsFunc(lines, func(line string) bool { return len([]rune(line)) > width }) {
			paragraphs[i] = fit.Fold(strings.Join(lines, " "), 0, width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// usage returns the usage of a command. Unlike in cobra, flags that a command inherits from its verb
// are grouped with its own flags, and the global flags (30 lines in each help text) are replaced by
// a reference to flux options.
func usage(cmd *cobra.Command, width int) string {
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
	writeCommands(&b, cmd, width)
	if cmd.HasParent() {
		writeFlags(&b, cmd, width)
	}
	b.WriteString("\n\n" + wrapped("Use \"flux options\" for the global flags, such as --context, --namespace and --timeout.", width) + "\n")
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n" + wrapped("Use \""+cmd.CommandPath()+" [command] --help\" for more information about a command.", width) + "\n")
	}
	return b.String()
}

// writeCommands writes the subcommands of a command by group.
func writeCommands(b *strings.Builder, cmd *cobra.Command, width int) {
	sections := append(cmd.Groups(), &cobra.Group{Title: "Available Commands:"})
	for _, group := range sections {
		title := "\n\n" + group.Title + "\n"
		for _, c := range cmd.Commands() {
			if c.GroupID == group.ID && (c.IsAvailableCommand() || c.Name() == "help" || isTopic(c)) {
				name := fmt.Sprintf("  %-*s ", c.NamePadding(), c.Name())
				b.WriteString(title + name + fit.Fold(strings.Repeat(" ", len(name))+c.Short, len(name), width)[len(name):])
				title = "\n"
			}
		}
	}
}

// writeFlags writes the flags of a command by group.
func writeFlags(b *strings.Builder, cmd *cobra.Command, width int) {
	groups := map[flagGroup]*pflag.FlagSet{}
	ownFlags(cmd).VisitAll(func(f *pflag.Flag) {
		group := groupOf(cmd, f.Name)
		if groups[group] == nil {
			groups[group] = pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
		}
		groups[group].AddFlag(f)
	})
	for _, group := range []flagGroup{commandFlags, selectionFlags, outputFlags} {
		if flags := groups[group]; flags != nil {
			lines := strings.ReplaceAll(flags.FlagUsagesWrapped(width), " (default [])", "")
			b.WriteString("\n\n" + string(group) + ":\n" + strings.TrimRight(lines, "\n"))
		}
	}
}

// ownFlags returns the flags of a command other than the global flags.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	add := func(f *pflag.Flag) {
		if f.Name != "help" {
			flags.AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	global := cmd.Root().PersistentFlags()
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if global.Lookup(f.Name) == nil {
			add(f)
		}
	})
	return flags
}

// flagGroup is the title of a group of flags in the help of a command.
type flagGroup string

const (
	commandFlags   flagGroup = "Flags"
	selectionFlags flagGroup = "Selection Flags"
	outputFlags    flagGroup = "Output Flags"
)

// groupOf returns the group of a flag. A row for the command or its verb
// takes precedence over a row for the flag alone.
func groupOf(cmd *cobra.Command, flag string) flagGroup {
	words := strings.Fields(cmd.CommandPath())[1:]
	for n := len(words); n >= 0; n-- {
		if group, ok := flagGroups()[strings.Join(append(words[:n:n], "--"+flag), " ")]; ok {
			return group
		}
	}
	return commandFlags
}

// flagGroups returns the groups of flags, by flag or by command and flag.
func flagGroups() map[string]flagGroup {
	return map[string]flagGroup{
		"--all": selectionFlags, "--all-namespaces": selectionFlags, "--label-selector": selectionFlags,
		"--failed": selectionFlags, "--not-ready": selectionFlags, "--stalled": selectionFlags, "--suspended": selectionFlags,
		"--status-selector": selectionFlags, "--since": selectionFlags, "--since-time": selectionFlags,
		"get --kind": selectionFlags, "logs --kind": selectionFlags, "logs --name": selectionFlags, "logs --level": selectionFlags,
		"logs --for": selectionFlags, "logs --tail": selectionFlags, "events --for": selectionFlags, "events --types": selectionFlags,
		"events --reason": selectionFlags, "list --filter-regex": selectionFlags, "list --filter-semver": selectionFlags,
		"resume --expired": selectionFlags, "tree --compact": selectionFlags, "tree --depth": selectionFlags,

		"--output": outputFlags, "--no-header": outputFlags, "--no-trunc": outputFlags, "--sort-by": outputFlags, "--show-source": outputFlags,
		"--show-secrets": outputFlags, "--mask-secrets": outputFlags, "--reveal": outputFlags, "--export": outputFlags, "--progress-bar": outputFlags, "--field-owners": outputFlags,

		"why --all": outputFlags, "pull --output": commandFlags, "build artifact --output": commandFlags,
	}
}

// shortUsage returns the usage of a command for an error.
func shortUsage(cmd *cobra.Command) string {
	return strings.TrimSpace(cmd.UsageString()) + "\n"
}

// newOptions returns the options command.
func newOptions(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the global flags",
		Long: `List the flags that all commands have. Flags that are not set on the command
line are set from FLUX_* environment variables, such as FLUX_TIMEOUT, and from
the configuration file: see "flux help environment".`,
		Example: `  # List the global flags
  flux options`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Printf("%s", cmd.Root().PersistentFlags().FlagUsagesWrapped(cmp.Or(ui.Columns(a.Out, a.Env), helpWidth)))
		},
	}
}
