package output

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testterminal"
)

// TestRedrawInPlace draws tables whose lines do not fit: every row keeps its place, and a line of
// exactly the terminal's width is complete.
func TestRedrawInPlace(t *testing.T) {
	t.Parallel()
	screen := testterminal.NewScreen(12, 9)
	var out strings.Builder
	l := NewLive(&out, []string{"NAME", "READY"}, true, func() Screen { return Screen{Width: 12, Height: 9, Color: true} })
	l.Put("a", []string{"a-long-name-of-an-object", "False"}, false)
	l.Put("b", []string{"\u4e2d\u6587\u4e2d\u6587\u4e2d\u6587", "False"}, false)
	for range 2 {
		if err := l.Draw(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Erase(); err != nil {
		t.Fatal(err)
	}
	screen.Write([]byte(strings.ReplaceAll(out.String(), "\n", "\r\n")))
	if got := screen.String(); got != "\n" || screen.Above() != "" {
		t.Errorf("left on the screen:\n%s", got)
	}
}

func TestCutLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line  string
		width int
		want  string
	}{
		{"exactly", 7, "exactly"},
		{"exactly", 6, "exact…"},
		{"exactly", 0, "exactly"},
		{"\x1b[31mred\x1b[0m and plain", 5, "\x1b[31mred\x1b[0m …"},
		{"plain \x1b[31mred\x1b[0m", 9, "plain \x1b[31mred\x1b[0m"},
		{"plain \x1b[31mred\x1b[0m", 8, "plain \x1b[31mr…\x1b[0m"},
		{"größer", 6, "größer"},
		{"größer", 5, "größ…"},
		{"", 3, ""},
	} {
		if got := cutLine(test.line, test.width); got != test.want {
			t.Errorf("%q in %d columns: %q, want %q", test.line, test.width, got, test.want)
		}
	}
}
