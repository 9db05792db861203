package hint

import (
	"fmt"
	"strings"
)

// harmless lists the characters other than letters and digits that a shell does not interpret.
const harmless = "@%_+=:,./-"

// Quote returns a word for a shell, in single quotes if necessary. Names in repositories,
// registries and clusters are untrusted, so a shell must parse each of them as a single word.
func Quote(word string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(harmless, r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Operand returns the last word of a command, quoted and protected from being parsed as an option.
func Operand(word string) string {
	if strings.HasPrefix(word, "-") {
		return "-- " + Quote(word)
	}
	return Quote(word)
}

// Command returns a command. Its format contains a %s for each word, which is quoted.
func Command(format string, words ...string) string {
	quoted := make([]any, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return fmt.Sprintf(format, quoted...)
}
