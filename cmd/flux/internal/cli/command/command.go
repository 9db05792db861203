// Package command provides argument checks and flag values for the cobra
// commands of flux.
package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/internal/hint"
)

// NoSubcommand is the cobra.PositionalArgs of a command that has only
// subcommands: an argument is an unknown command.
func NoSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := suggest.Command(cmd, args[0]); near != "" {
		return &hint.Error{Err: err, Hint: fmt.Sprintf("did you mean '%s'?", near)}
	}
	return &hint.Error{Err: err, Hint: fmt.Sprintf("run '%s --help' to see its commands", cmd.CommandPath())}
}

// Group returns a command that has only subcommands.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return clierr.Usage(cmd, "a command is required") },
	}
	cmd.AddCommand(children...)
	return cmd
}
