package ui_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/terminal/ui"
)

// TestMessages prints messages with several lines, with and without a prefix, and long ones.
func TestMessages(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[bool]string{false: "✗ a\n  ✔ b\nc\n", true: "✗ a\n  |   ✔ b\n  | c\n"} {
		var b bytes.Buffer
		terminal := ui.New(strings.NewReader(""), &b, func(string) string { return "" })
		terminal.Prefix = prefix
		terminal.Failure("%s", "a\n✔ b\nc")
		if b.String() != want {
			t.Errorf("%t: %q, want %q", prefix, b.String(), want)
		}
		b.Reset()
		terminal.Warning("begin %s end", strings.Repeat("x", 1<<20))
		if text := b.String(); len(text) > 65<<10 || !strings.HasPrefix(text, "⚠️ begin x") || !strings.HasSuffix(text, "x end\n") {
			t.Errorf("%d bytes: %.40q", len(text), text)
		}
	}
}
