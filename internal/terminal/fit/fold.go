package fit

import "strings"

// Fold wraps a line between words at a number of columns, with a hanging indent for the following lines. With 0
// columns, the line is not wrapped. Commands in the line are never wrapped, so that they can be copied.
func Fold(line string, hang, columns int) string {
	if columns <= hang || Width(line) <= columns {
		return line
	}
	start := len(line) - len(strings.TrimLeft(line, " "))
	column := start
	var b strings.Builder
	b.WriteString(line[:start])
	for i, word := range foldable(line[start:]) {
		length := Width(word)
		switch {
		case i == 0:
		case column+1+length > columns && column > hang:
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

// foldable returns the words of a text. A command at the end of the text counts as one word.
func foldable(text string) []string {
	words := strings.Fields(text)
	for i, word := range words {
		if (word == "flux" || word == "kubectl") && (i == 0 || strings.HasSuffix(words[i-1], ":")) {
			return append(words[:i:i], strings.Join(words[i:], " "))
		}
	}
	return words
}
