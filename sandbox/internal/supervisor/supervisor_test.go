package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	t.Parallel()
	stack := strings.Repeat("\ngoroutine 1 [running]:\nmain.main()", 20)
	for name, c := range map[string]struct{ log, want string }{
		"empty":           {"", ""},
		"the last lines":  {"a\nb\nc\n", "  b\n  c"},
		"a panic":         {"a\npanic: no memory\n" + stack, "  panic: no memory\n  "},
		"a fatal error":   {"a\nb\nfatal error: out of memory" + stack, "  fatal error: out of memory\n  goroutine 1 [running]:"},
		"a word in a log": {"a panic: none\nb\nc\n", "  b\n  c"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Tail(path, 2); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := Tail(filepath.Join(t.TempDir(), "none"), 2); got != "" {
		t.Errorf("a missing file: %q", got)
	}
}
