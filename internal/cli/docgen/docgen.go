// Package docgen has the command docgen, which writes the reference.
package docgen

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
)

// NewCommand writes the reference of all commands. It is for who builds flux,
// so help does not show it.
func NewCommand(*app.App) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:    "docgen",
		Short:  "Write the reference of all commands as Markdown",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return writeReference(cmd.Root(), path) },
	}
	cmd.Flags().StringVar(&path, "path", "./docs/cmd", "the folder to write to")
	return cmd
}

func writeReference(root *cobra.Command, path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("making the folder of the reference: %w", err)
	}
	timeless(root)
	if err := doc.GenMarkdownTree(root, path); err != nil {
		return fmt.Errorf("writing the reference to %s: %w", path, err)
	}
	return nil
}

// timeless takes out of the commands what depends on the day and the machine,
// so that the reference changes only with the commands.
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
