// Package docgen implements the docgen command, which writes the command
// reference.
package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
)

// NewCommand returns the docgen command. It is hidden, because only flux developers need it.
func NewCommand(*app.App) *cobra.Command {
	var path, exits string
	cmd := &cobra.Command{
		Use:    "docgen",
		Short:  "Write the reference of all commands as Markdown",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if exits != "" {
				if err := os.WriteFile(exits, []byte(command.ExitDocument(cmd.Root(), 0)), 0o644); err != nil {
					return err
				}
			}
			if err := os.MkdirAll(path, 0o755); err != nil {
				return fmt.Errorf("creating the directory of the reference: %w", err)
			}
			Timeless(cmd.Root())
			if err := writePages(cmd.Root(), path); err != nil {
				return fmt.Errorf("writing the reference to %s: %w", path, err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "path", "./docs/cmd", "output directory")
	cmd.Flags().StringVar(&exits, "exit-codes", "", "also write the exit code reference to this file")
	return cmd
}

// writePages writes a page for each command below a command and for itself. Only the page of flux lists the
// global flags and --help.
func writePages(cmd *cobra.Command, path string) error {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Hidden = cmd.HasParent()
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
	if err := os.WriteFile(filepath.Join(path, name), []byte(page(cmd)), 0o644); err != nil {
		return err
	}
	if !cmd.HasParent() {
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	}
	for _, child := range documented(cmd) {
		if err := writePages(child, path); err != nil {
			return err
		}
	}
	return nil
}

// documented returns the subcommands that have a page.
func documented(cmd *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && !child.IsAdditionalHelpTopicCommand() {
			found = append(found, child)
		}
	}
	return found
}

// page returns the page of a command. Its format is that of cobra's package doc, which would make every start of flux 1 ms
// longer: it imports libraries for manual pages.
func page(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(&b, "### Synopsis\n\n%s\n\n", cmd.Long)
	}
	block := func(heading, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s```\n%s\n```\n\n", heading, strings.TrimSuffix(text, "\n"))
		}
	}
	if cmd.Runnable() {
		block("", cmd.UseLine())
	}
	block("### Examples\n\n", cmd.Example)
	if !cmd.HasParent() {
		block("### Global flags\n\n", cmd.NonInheritedFlags().FlagUsages())
	} else {
		block("### Options\n\n", cmd.NonInheritedFlags().FlagUsages())
		block("### Options inherited from parent commands\n\n", cmd.InheritedFlags().FlagUsages())
		b.WriteString("The [global flags](flux.md#global-flags) also apply.\n\n")
		if exits := command.ExitReference(cmd); exits != "" {
			b.WriteString(exits + "\n")
		}
	}
	b.WriteString("### SEE ALSO\n\n")
	link := func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "* [%s](%s.md)\t - %s\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "_"), cmd.Short)
	}
	if cmd.HasParent() {
		link(cmd.Parent())
	}
	for _, child := range documented(cmd) {
		link(child)
	}
	b.WriteString("\n")
	return b.String()
}

// Timeless removes dates and machine-specific defaults from the commands, so
// that the reference is reproducible.
func Timeless(root *cobra.Command) {
	root.DisableAutoGenTag = true
	defaults := map[string]string{"namespace": app.DefaultNamespace, "flux-namespace": app.DefaultNamespace}
	still := func(f *pflag.Flag) {
		if value, ok := defaults[f.Name]; ok {
			f.DefValue = value
		}
	}
	root.PersistentFlags().VisitAll(still)
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(still)
		for _, child := range cmd.Commands() {
			each(child)
		}
	}
	each(root)
}
