package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// shortUsage is how a command is used, without the flags that all commands have.
func shortUsage(cmd *cobra.Command) string {
	text := cmd.UsageString()
	if start := strings.Index(text, "\nGlobal Flags:"); start >= 0 {
		length := strings.Index(text[start:], "\n\n")
		if length < 0 {
			return strings.TrimSpace(text[:start]) + "\n"
		}
		text = text[:start] + text[start+length+1:]
	}
	return strings.TrimSpace(text) + "\n"
}
