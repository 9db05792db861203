package kinds

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// completeSelection completes the arguments of a verb that are not subcommands:
// KIND[,KIND…] NAME…, KIND/NAME… and "all".
func completeSelection(a *app.App, v Verb) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 && strings.Contains(prefix, "/"):
			return complete.NameAfterKind(a)(cmd, args, prefix)
		case len(args) == 0 && strings.Contains(prefix, ","):
			return complete.List(objref.KindWords(v.rows()))(cmd, args, prefix)
		case len(args) == 0:
			return v.words(cmd, prefix), cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(args[0], "/"):
			return complete.KindAndName(a, v.rows())(cmd, args, prefix)
		case len(controllers.KindsNamed(args[0])) == 0 && !strings.Contains(args[0], ","):
			return complete.NamesOf(a, complete.ByWord(args[0]), "")(cmd, args[1:], prefix)
		}
		s, err := v.ofKinds(cmd, strings.Split(args[0], ","), nil)
		if err != nil || args[0] == everyKind {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete.NamesOf(a, complete.ByKind(s.Kinds), "")(cmd, args[1:], prefix)
	}
}

// words completes "all", unless it is a subcommand or the verb does not accept it.
func (v Verb) words(cmd *cobra.Command, prefix string) []string {
	has := slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == everyKind })
	if v.Explicit || v.Single || has {
		return nil
	}
	return complete.Matching([]string{everyKind}, nil, prefix)
}
