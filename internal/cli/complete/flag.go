package complete

import (
	"strings"

	"github.com/spf13/cobra"
)

// Flag panics for a flag that the command does not have, as cobra's
// own functions do: a test that builds the commands finds it.
func Flag(cmd *cobra.Command, name string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err)
	}
}

// Format leaves the cursor behind the "=" of formats that go on.
func Format(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
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

// List completes the last of several words between commas.
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
