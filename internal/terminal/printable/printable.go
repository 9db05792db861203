// Package printable escapes untrusted text for output, so that it cannot control a terminal, reorder or hide adjacent
// text, or start a new line. Replaced characters remain visible as escapes such as \x1b or \u202e.
package printable

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line escapes text and returns it on one line: white space is replaced with spaces.
func Line(s string) string { return escaped(s, line) }

// Text escapes text that may have several lines: line feeds and tabs are kept.
func Text(s string) string { return escaped(s, text) }

// Value escapes a value for comparisons: line feeds and tabs are kept, and
// other white space is escaped, so that differences are visible.
func Value(s string) string { return escaped(s, value) }

// form specifies how white space is treated.
type form int

const (
	line form = iota
	text
	value
)

// Lines applies Line to each text.
func Lines(texts []string) []string {
	fit := texts
	for i := range texts {
		line := Line(texts[i])
		if line == texts[i] {
			continue
		}
		if &fit[0] == &texts[0] {
			fit = append([]string(nil), texts...)
		}
		fit[i] = line
	}
	return fit
}

// escaped replaces hidden characters, and white space according to the form.
func escaped(s string, as form) string {
	first := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
	if first < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	b.WriteString(s[:first])
	for i := first; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case as != line && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case as == value && (r == '\u2028' || r == '\u2029'):
			escape(&b, r)
		case as != value && r == '\r' && strings.HasPrefix(s[i+size:], "\n"): // CR LF becomes LF
		case as != value && unicode.IsSpace(r) && r < 0x100 && r != 0xa0, r == '\u2028', r == '\u2029':
			b.WriteByte(' ')
		case hidden(r) && !joins(s, i, size):
			escape(&b, r)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// escape writes the escape of a character in a Go or JSON string.
func escape(b *strings.Builder, r rune) {
	switch {
	case r < utf8.RuneSelf:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// hidden reports whether a character controls a terminal or is invisible: control characters, and invisible format
// characters such as those that change the text direction.
func hidden(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case unicode.IsControl(r):
		return true
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	default:
		return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
	}
}

// The zero-width joiner and non-joiner, which several scripts and emoji require.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// joins reports whether the character at i is between two visible characters outside
// ASCII. Elsewhere, joiners are invisible and only make different names look the same.
func joins(s string, i, size int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	if r != zeroWidthJoiner && r != zeroWidthNonJoiner {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+size:])
	return shaped(before) && shaped(after)
}

func shaped(r rune) bool {
	return r >= utf8.RuneSelf && r != utf8.RuneError && !unicode.IsSpace(r) && !hidden(r)
}

// Args applies Text to the arguments of a format: strings, errors and Stringers.
func Args(args []any) []any {
	fit := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			fit[i] = Text(v)
		case []byte:
			fit[i] = Text(string(v))
		case []string, []any, map[string]any:
			fit[i] = Text(fmt.Sprint(v))
		case error:
			fit[i] = Text(v.Error())
		case fmt.Stringer:
			fit[i] = Text(v.String())
		default:
			fit[i] = arg
			if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
				fit[i] = Text(v.String())
			}
		}
	}
	return fit
}
