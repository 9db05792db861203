package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// NewWriter returns a writer that applies Text to everything written to it. A
// character may be split between writes. Close writes an incomplete character.
func NewWriter(w io.Writer) io.WriteCloser { return &writer{w: w, fit: Text} }

// NewJSONWriter returns a writer for JSON that escapes DEL, C1 controls, bidirectional controls and all other
// characters that Text replaces. The escapes do not change the JSON values.
func NewJSONWriter(w io.Writer) io.WriteCloser { return &writer{w: w, fit: JSON} }

// JSON escapes the characters in JSON text that Text replaces. Characters above U+FFFF are kept, because their
// escapes differ between JSON and YAML, and the text may also be parsed as YAML.
func JSON(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x7f }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			b.WriteString(`\ufffd`)
		case r < 0x7f || r > 0xffff || !hidden(r) && r != '\u2028' && r != '\u2029':
			b.WriteString(s[i : i+size])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

type writer struct {
	w   io.Writer
	fit func(string) string
	// rest is the end of the text whose escaping depends on the next write: an
	// incomplete character, a CR that an LF may follow, or a joiner.
	rest []byte
	// last is the last written character if it is outside ASCII, because a joiner may follow it.
	last string
}

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text) - unfinished(text)
	w.rest = append([]byte(nil), text[end:]...)
	if err := w.pass(string(text[:end])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// pass writes a text that follows the last character.
func (w *writer) pass(text string) error {
	_, err := io.WriteString(w.w, w.fit(w.last + text)[len(w.fit(w.last)):])
	if text != "" {
		_, size := utf8.DecodeLastRuneInString(text)
		w.last = text[len(text)-size:]
		if w.last[0] < utf8.RuneSelf {
			w.last = ""
		}
	}
	return err
}

// Close writes the rest.
func (w *writer) Close() error {
	rest := w.rest
	w.rest = nil
	return w.pass(string(rest))
}

// unfinished returns the length of an incomplete character, a CR or a joiner at the
// end of a text.
func unfinished(text []byte) int {
	if len(text) > 0 && text[len(text)-1] == '\r' {
		return 1
	}
	begun := begun(text)
	if r, size := utf8.DecodeLastRune(text[:len(text)-begun]); r == zeroWidthJoiner || r == zeroWidthNonJoiner {
		return begun + size
	}
	return begun
}

// begun returns the length of an incomplete character at the end of a text.
func begun(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
