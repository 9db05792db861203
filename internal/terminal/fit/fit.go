// Package fit measures, truncates and wraps text for the columns of a terminal. The result does not depend on the locale.
package fit

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// condition returns the character widths for locales that are not East Asian.
func condition() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Width returns the number of columns of a text without control characters.
func Width(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return condition().StringWidth(s)
		}
	}
	return len(s)
}

// Fill appends spaces up to a width.
func Fill(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }

// Cut truncates a text to a width and adds an ellipsis. A width below 1 means no limit.
func Cut(s string, width int) string {
	if width < 1 || Width(s) <= width {
		return s
	}
	return condition().Truncate(s, width-1, "") + "…"
}

// CutWords truncates a text like Cut, but without a space before the ellipsis.
func CutWords(s string, width int) string {
	cut := Cut(s, width)
	if cut == s {
		return s
	}
	return strings.TrimRight(strings.TrimSuffix(cut, "…"), " ") + "…"
}

// CutMiddle truncates a text in the middle. It keeps more characters at the end, where revisions contain the commit
// and references the name.
func CutMiddle(s string, width int) string {
	if width < 3 || Width(s) <= width {
		return s
	}
	tail := (width - 1) * 2 / 3
	return condition().Truncate(s, width-1-tail, "") + "…" + condition().TruncateLeft(s, Width(s)-tail, "")
}
