// Package printable makes text of others fit to be shown: nothing in it can
// control a terminal, reorder or hide what stands beside it, or start a line of
// its own. What is replaced stays visible, as an escape such as \x1b or \u202e.
package printable

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text on one line: white space that is not a space becomes one.
func Line(s string) string { return escaped(s, line) }

// Text returns text that may have several lines: line feeds and tabs stay.
func Text(s string) string { return escaped(s, text) }

// Value returns a value that is compared with another: only line feeds and tabs
// stay, and what differs in other white space is seen to differ.
func Value(s string) string { return escaped(s, value) }

// form is how much of white space stays.
type form int

const (
	line form = iota
	text
	value
)

// Lines returns Line of every text.
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

// escaped replaces what is hidden, and line ends where lines are not kept.
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
		case as != value && r == '\r' && strings.HasPrefix(s[i+size:], "\n"): // the line feed stands for both
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

// escape writes a character as Go and JSON write it in a string.
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

// hidden reports whether a character controls a terminal or cannot be seen:
// controls, and format characters such as those that change the direction of
// text or take no room. Format characters that have a shape are none of them.
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

// The characters that join or part the shapes of their neighbours, in several
// scripts and in emoji.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// joins reports whether the character at i does what it is for: it stands
// between two characters that are beyond ASCII and seen. Elsewhere it would only
// make two names look the same.
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

// Args returns the arguments of a format in which every text is what Text
// returns of it: strings, errors, and what describes itself.
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
