// Package fold breaks long lines for people who read them on a terminal.
package fold

import (
	"strings"
	"unicode/utf8"
)

// Line breaks a line between words where the terminal ends, and begins the
// lines that follow with a hanging indent. Without a width the line stays
// whole. So does a command in it, which somebody may copy: the terminal breaks
// that without a line end.
func Line(line string, hang, width int) string {
	if width <= hang || utf8.RuneCountInString(line) <= width {
		return line
	}
	start := len(line) - len(strings.TrimLeft(line, " "))
	column := start
	var b strings.Builder
	b.WriteString(line[:start])
	for i, word := range foldable(line[start:]) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+length > width && column > hang:
			b.WriteString("\n" + strings.Repeat(" ", hang))
			column = hang
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}

// foldable are the words of a text; a command up to its end is one.
func foldable(text string) []string {
	words := strings.Fields(text)
	for i, word := range words {
		if (word == "flux" || word == "kubectl") && (i == 0 || strings.HasSuffix(words[i-1], ":")) {
			return append(words[:i:i], strings.Join(words[i:], " "))
		}
	}
	return words
}
