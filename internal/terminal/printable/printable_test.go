package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

func TestText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, line, text string }{
		"plain":           {"Applied revision: main@sha1:abc", "", ""},
		"other scripts":   {"Zażółć 日本語 עברית", "", ""},
		"symbols":         {"✔ ⚠️ ► … ├── ñ", "", ""},
		"joined emoji":    {"👩‍💻 fix", "", ""},
		"Persian":         {"می\u200cخواهم", "", ""},
		"no-break space":  {"a\u00a0b", "", ""},
		"SGR":             {"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		"OSC 52":          {"\x1b]52;c;cm0=\a", `\x1b]52;c;cm0=\x07`, `\x1b]52;c;cm0=\x07`},
		"C1 CSI":          {"\u009b2J", `\u009b2J`, `\u009b2J`},
		"C1 CSI, raw":     {"\x9b2J", `\x9b2J`, `\x9b2J`},
		"backspace":       {"ab\b\bok", `ab\x08\x08ok`, `ab\x08\x08ok`},
		"DEL":             {"a\x7f", `a\x7f`, `a\x7f`},
		"NUL":             {"a\x00b", `a\x00b`, `a\x00b`},
		"carriage return": {"failed\rready ", "failed ready ", "failed ready "},
		"line feed":       {"app\n✔ ready", "app ✔ ready", "app\n✔ ready"},
		"CR LF":           {"a\r\nb", "a b", "a\nb"},
		"tab":             {"a\tb", "a b", "a\tb"},
		"NEL":             {"a\u0085b", "a b", "a b"},
		"line separator":  {"a\u2028b\u2029c", "a b c", "a b c"},
		"bidi override":   {"app\u202egpj.exe", `app\u202egpj.exe`, `app\u202egpj.exe`},
		"bidi isolate":    {"\u2066a\u2069", `\u2066a\u2069`, `\u2066a\u2069`},
		"zero width":      {"ad\u200bmin", `ad\u200bmin`, `ad\u200bmin`},
		"joiner in ASCII": {"ad\u200dmin", `ad\u200dmin`, `ad\u200dmin`},
		"joiners":         {"é\u200d\u200dé", `é\u200d\u200dé`, `é\u200d\u200dé`},
		"byte order mark": {"\ufeffapp", `\ufeffapp`, `\ufeffapp`},
		"tag characters":  {"a\U000e0041", `a\U000e0041`, `a\U000e0041`},
		"Hangul filler":   {"a\u3164b", `a\u3164b`, `a\u3164b`},
		"soft hyphen":     {"a\u00adb", `a\u00adb`, `a\u00adb`},
		"invalid UTF-8":   {"a\xff\xc3(", `a\xff\xc3(`, `a\xff\xc3(`},
		"cut UTF-8":       {"a\xe2\x80", `a\xe2\x80`, `a\xe2\x80`},
	} {
		if test.line == "" {
			test.line, test.text = test.in, test.in
		}
		if got := printable.Line(test.in); got != test.line {
			t.Errorf("%s: Line(%q) = %q, want %q", name, test.in, got, test.line)
		}
		if got := printable.Text(test.in); got != test.text {
			t.Errorf("%s: Text(%q) = %q, want %q", name, test.in, got, test.text)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "a\r\nb": "a\\x0d\nb", "a\u2028b": `a\u2028b`, "a\u0085": `a\u0085`, "a\vb": `a\x0bb`,
		"\x1b[2J": `\x1b[2J`, "é b": "é b",
	} {
		if got := printable.Value(in); got != want {
			t.Errorf("Value(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	type word string
	for _, c := range []struct {
		format, want string
		arg          any
	}{
		{"%s", `\x1b`, "\x1b"}, {"%s", `\x1b`, errors.New("\x1b")}, {"%v", `[\x1b]`, []string{"\x1b"}}, {"%s", `\x1b`, word("\x1b")},
		{"%s", "5s", 5 * time.Second}, {"%d", "5", 5}, {"%s", `\x1b`, []byte("\x1b")}, {"%v", "<nil>", nil}, {"%v", "true", true},
	} {
		if got := fmt.Sprintf(c.format, printable.Args([]any{c.arg})...); got != c.want {
			t.Errorf("%s of %#v = %q, want %q", c.format, c.arg, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	given := []string{"a", "b\n", "c"}
	if got := printable.Lines(given); got[1] != "b " || got[2] != "c" {
		t.Errorf("got %q", got)
	}
	if given[1] != "b\n" {
		t.Error("the given texts were changed")
	}
}

// TestWriter cuts a text at every place: what is written must not depend on it.
func TestWriter(t *testing.T) {
	t.Parallel()
	const text = "a\u202e\x9b\r\nж\r\x1b\U000e0041é\xe2\x80"
	for cut := range len(text) {
		var b strings.Builder
		w := printable.NewWriter(&b)
		for _, part := range []string{text[:cut], text[cut:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := printable.Text(text); b.String() != want {
			t.Errorf("cut at %d: %q, want %q", cut, b.String(), want)
		}
	}
}

// FuzzText checks the sanitizer with arbitrary bytes.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "app", "\x1b[2J", "\u009b", "\xff", "a\u200db", "👩‍💻", "\r\n", "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, text := printable.Line(s), printable.Text(s)
		for _, r := range line {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("Line(%q) has %U", s, r)
			}
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("Text(%q) = %q", s, text)
		}
		if printable.Text(text) != text || printable.Line(line) != line {
			t.Errorf("%q is replaced twice", s)
		}
		encoded, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		escaped := printable.JSON(string(encoded))
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal([]byte(escaped), &after) != nil || before != after {
			t.Errorf("JSON(%q) = %q has another value", encoded, escaped)
		}
		if bytes.ContainsFunc([]byte(escaped), unicode.IsControl) {
			t.Errorf("JSON(%q) = %q", encoded, escaped)
		}
		if most := 10 * len(s); max(len(line), len(text), len(printable.Value(s))) > most {
			t.Errorf("%q becomes longer than %d bytes", s, most)
		}
		var b strings.Builder
		w := printable.NewWriter(&b)
		for i := range len(s) { // byte by byte
			if _, err := w.Write([]byte(s[i : i+1])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || b.String() != text {
			t.Errorf("%q is written as %q, want %q (%v)", s, b.String(), text, err)
		}
	})
}
