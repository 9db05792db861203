package complete

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/git"
)

// Revisions completes flags with the branches and tags of the clone in the current directory.
func Revisions(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		Flag(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			checkout, err := git.Open(".")
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			defer func() { _ = checkout.Close() }() // read-only
			branches, tags, err := checkout.Names()
			if err != nil || flag == "branch" {
				tags = nil
			}
			return append(branches, tags...), cobra.ShellCompDirectiveNoFileComp
		})
	}
}
