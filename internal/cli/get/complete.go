package get

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/pkg/controllers"
)

// complete adds the completion of the flags of get.
func (o *options) complete(cmd *cobra.Command) {
	complete.Flag(cmd, "output", complete.Format)
	complete.Flag(cmd, "status-selector", cobra.FixedCompletions([]string{
		"ready=false", "ready=true", "ready=unknown", "ready!=true", "reconciling=true", "stalled=true",
		"healthy=false", "released=false", "remediated=true",
	}, cobra.ShellCompDirectiveNoFileComp))
	complete.Flag(cmd, "sort-by", sortCompletion)
}

// sortCompletion completes the columns of the listed kind, or of all kinds.
func sortCompletion(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	q := &query{kinds: controllers.Kinds, several: true, options: &options{}}
	for _, k := range controllers.Kinds {
		if cmd.Name() == k.Plural && (k.Family == "" || cmd.Parent().HasAlias(k.Family)) {
			q.kinds, q.several = []controllers.Kind{k}, false
		}
	}
	return columnWords(sortable(q)), cobra.ShellCompDirectiveNoFileComp
}
