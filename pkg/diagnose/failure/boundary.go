package failure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// boundary returns where the next part of a message begins: after a colon and a
// space, or at a new line, outside of quotes. It returns -1 where there is none.
func boundary(s string) int {
	for i := 0; i < len(s); {
		if n := quoted(s, i); n > 0 {
			i += n
			continue
		}
		switch {
		case s[i] == '\n' && strings.TrimSpace(s[i:]) != "":
			return i + len(s[i:]) - len(strings.TrimLeft(s[i:], " \t\n"))
		case s[i] == ':' && i+2 < len(s) && (s[i+1] == ' ' || s[i+1] == '\n'):
			return i + 1 + len(s[i+1:]) - len(strings.TrimLeft(s[i+1:], " \t\n"))
		}
		i++
	}
	return -1
}

// quoted returns the length of the quoted text that begins at i, 0 where none
// does. An apostrophe in a word is none.
func quoted(s string, i int) int {
	switch q := s[i]; q {
	case '"':
		return quotedBy(s[i:], func(string) bool { return true })
	case '\'', '`':
		if i > 0 && isWord(lastRune(s[:i])) {
			return 0
		}
		return quotedBy(s[i:], func(rest string) bool { return rest == "" || !isWord(firstRune(rest)) })
	default:
		return 0
	}
}

// longestValue bounds how far the end of a quoted text or of a value in brackets is
// looked for, so that unmatched ones do not cost the square of a message.
const longestValue = 8 << 10

// quotedBy returns the length of text in quotes like its first character; ends
// reports whether the text may end before what follows.
func quotedBy(s string, ends func(string) bool) int {
	for i := 1; i < min(len(s), longestValue); i++ {
		switch {
		case s[i] == '\\' && s[0] == '"':
			i++
		case s[i] == '\n':
			return 0
		case s[i] == s[0] && ends(s[i+1:]):
			return i + 1
		}
	}
	return 0
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}
