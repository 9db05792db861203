package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// complete offers the values of the flags of get.
func (o *getOptions) complete(cmd *cobra.Command) {
	completeFlag(cmd, "output", formatCompletion)
	completeFlag(cmd, "status-selector", cobra.FixedCompletions([]string{
		"ready=false", "ready=true", "ready=unknown", "ready!=true", "reconciling=true", "stalled=true",
		"healthy=false", "released=false", "remediated=true",
	}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "sort-by", sortCompletion)
}

// completeFlag panics for a flag that the command does not have, as cobra's
// own functions do: a test that builds the commands finds it.
func completeFlag(cmd *cobra.Command, name string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err)
	}
}

// formatCompletion leaves the cursor behind the "=" of formats that go on.
func formatCompletion(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var whole, open []string
	for _, format := range []string{"json", "yaml", "name", "wide", "jsonpath=", "go-template=", "custom-columns="} {
		switch {
		case !strings.HasPrefix(format, prefix):
		case strings.HasSuffix(format, "="):
			open = append(open, format)
		default:
			whole = append(whole, format)
		}
	}
	if len(whole) == 0 {
		return open, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	return append(whole, open...), cobra.ShellCompDirectiveNoFileComp
}

// listCompletion completes the last of several words between commas.
func listCompletion(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before, last := "", prefix
		if i := strings.LastIndex(prefix, ","); i >= 0 {
			before, last = prefix[:i+1], prefix[i+1:]
		}
		var values []string
		for _, word := range words {
			if strings.HasPrefix(word, last) {
				values = append(values, before+word)
			}
		}
		return values, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// sortCompletion offers the columns of the kind that is listed, or of all.
func sortCompletion(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	q := &query{kinds: controllers.Kinds, several: true, options: &getOptions{}}
	for _, k := range controllers.Kinds {
		if cmd.Name() == k.Plural && (k.Family == "" || cmd.Parent().HasAlias(k.Family)) {
			q.kinds, q.several = []controllers.Kind{k}, false
		}
	}
	return columnWords(q.sortable()), cobra.ShellCompDirectiveNoFileComp
}
