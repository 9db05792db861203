package failure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// boundary returns the start of the next part of a message: after a colon and a
// space, or after a newline, outside quotes. It returns -1 if there is none.
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

// quoted returns the length of the quoted text at i, or 0 if there is none. An apostrophe in a word is not a quote.
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

// longestValue is the maximum length of a quoted text or a value in brackets,
// so that unmatched quotes and brackets do not cause quadratic time.
const longestValue = 8 << 10

// quotedBy returns the length of the quoted text at the start of s. ends
// reports whether the text may end at a quote, given the rest of s.
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

// Parts returns the parts of a message, without quoted text.
func Parts(message string) []string {
	message = message[:min(len(message), longest)]
	var parts []string
	for range deepest {
		next := boundary(message)
		if next < 0 {
			break
		}
		parts = append(parts, unquoted(strings.TrimRight(message[:next], ": \t\n")))
		message = message[next:]
	}
	return append(parts, unquoted(message))
}

// unquoted returns a text with quoted parts replaced by empty quotes.
func unquoted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if n := quoted(s, i); n > 1 {
			b.WriteString(strings.Repeat(s[i:i+1], 2))
			i += n
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}
