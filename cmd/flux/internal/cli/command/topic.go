package command

import (
	"strings"

	"github.com/fluxkit/flux/internal/terminal/fit"
)

// Entry returns an entry of a list in a help topic: a name, and a text of at most 80 columns below it.
func Entry(name, text string) string {
	const indent, width = 6, 80
	return "\n  " + name + "\n" + fit.Fold(strings.Repeat(" ", indent)+text, indent, width)
}
