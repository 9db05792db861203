// Package docgen implements the docgen command, which writes the command
// reference.
package docgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
)

// NewCommand returns the docgen command. It is hidden, because only flux developers need it.
func NewCommand(a *app.App) *cobra.Command {
	var path, exits string
	var man bool
	cmd := &cobra.Command{
		Use:    "docgen",
		Short:  "Write the reference of all commands as Markdown",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write := writeMarkdown
			if man {
				write = func(root *cobra.Command, path string) error { return writeManual(root, path, a.Build) }
			}
			if exits != "" {
				if err := os.WriteFile(exits, []byte(command.ExitDocument(cmd.Root(), 0)), 0o644); err != nil {
					return err
				}
			}
			return writeReference(cmd.Root(), path, write)
		},
	}
	cmd.Flags().StringVar(&path, "path", "./docs/cmd", "output directory")
	cmd.Flags().StringVar(&exits, "exit-codes", "", "also write the exit code reference to this file")
	cmd.Flags().BoolVar(&man, "man", false, "write manual pages instead of Markdown")
	return cmd
}

func writeReference(root *cobra.Command, path string, write func(*cobra.Command, string) error) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("creating the directory of the reference: %w", err)
	}
	timeless(root)
	if err := write(root, path); err != nil {
		return fmt.Errorf("writing the reference to %s: %w", path, err)
	}
	return nil
}

// seeAlso is the last heading of a page.
const seeAlso = "### SEE ALSO"

// writeMarkdown writes a page for each command. Only the page of flux lists the global flags and
// --help; the others link to it.
func writeMarkdown(root *cobra.Command, path string) error {
	if err := writePage(root, path, "### Options\n", "### Global flags\n"); err != nil {
		return err
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	var below func(*cobra.Command) error
	below = func(cmd *cobra.Command) error {
		for _, child := range cmd.Commands() {
			if !child.IsAvailableCommand() || child.IsAdditionalHelpTopicCommand() {
				continue
			}
			child.InitDefaultHelpFlag()
			child.Flags().Lookup("help").Hidden = true
			rest := "The [global flags](flux.md#global-flags) also apply.\n\n"
			if exits := command.ExitReference(child); exits != "" {
				rest += exits + "\n"
			}
			if err := writePage(child, path, seeAlso, rest+seeAlso); err != nil {
				return err
			}
			if err := below(child); err != nil {
				return err
			}
		}
		return nil
	}
	return below(root)
}

// writePage writes the page of a command, with one part of cobra's text replaced.
func writePage(cmd *cobra.Command, path, part, replacement string) error {
	var page bytes.Buffer
	if err := doc.GenMarkdown(cmd, &page); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
	return os.WriteFile(filepath.Join(path, name), []byte(strings.Replace(page.String(), part, replacement, 1)), 0o644)
}

// writeManual writes manual pages with the date of the commit, so that builds are reproducible.
func writeManual(root *cobra.Command, path string, build app.Build) error {
	header := &doc.GenManHeader{Section: "1", Source: "flux " + build.Version, Manual: "flux", Date: &time.Time{}}
	if build.Date != "" {
		date, err := time.Parse(time.RFC3339, build.Date)
		if err != nil {
			return err
		}
		header.Date = &date
	}
	return doc.GenManTree(root, header, path)
}

// timeless removes dates and machine-specific defaults from the commands, so
// that the reference is reproducible.
func timeless(root *cobra.Command) {
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
