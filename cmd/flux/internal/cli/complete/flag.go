package complete

import (
	"strings"

	"github.com/spf13/cobra"
)

// Flag registers the completion of a flag. It panics if the command has no such
// flag, which every test that builds the command detects.
func Flag(cmd *cobra.Command, name string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err)
	}
}

// Format completes --output of get. It adds no space after formats that take an
// expression, such as jsonpath=.
func Format(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var complete, prefixes []string
	for _, format := range []string{"json", "yaml", "name", "wide", "jsonpath=", "go-template=", "custom-columns="} {
		switch {
		case !strings.HasPrefix(format, prefix):
		case strings.HasSuffix(format, "="):
			prefixes = append(prefixes, format)
		default:
			complete = append(complete, format)
		}
	}
	if len(complete) == 0 {
		return prefixes, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	return append(complete, prefixes...), cobra.ShellCompDirectiveNoFileComp
}

// List completes the last element of a comma-separated list.
func List(words []string) cobra.CompletionFunc {
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
