package command

import (
	"strings"

	"github.com/fluxkit/flux/internal/terminal/fit"
)

// Entry returns a list entry of a help topic: the name, and below it the text, wrapped at 80 columns.
func Entry(name, text string) string {
	const indent, width = 6, 80
	return "\n  " + name + "\n" + fit.Fold(strings.Repeat(" ", indent)+text, indent, width)
}
