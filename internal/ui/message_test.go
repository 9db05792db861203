package ui_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/ui"
)

// TestMessages prints messages with several lines and long ones, in and outside of a CI system.
func TestMessages(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{"": "✗ a\n  ✔ b\nc\n", "GITHUB_ACTIONS": "✗ a\n  |   ✔ b\n  | c\n"} {
		var b bytes.Buffer
		terminal := ui.New(strings.NewReader(""), &b, func(name string) string {
			if name == variable {
				return "true"
			}
			return ""
		})
		terminal.Failure("%s", "a\n✔ b\nc")
		if b.String() != want {
			t.Errorf("%s: %q, want %q", variable, b.String(), want)
		}
		b.Reset()
		terminal.Warning("begin %s end", strings.Repeat("x", 1<<20))
		if text := b.String(); len(text) > 65<<10 || !strings.HasPrefix(text, "⚠️ begin x") || !strings.HasSuffix(text, "x end\n") {
			t.Errorf("%d bytes: %.40q", len(text), text)
		}
	}
}
