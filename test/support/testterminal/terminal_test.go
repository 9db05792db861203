package testterminal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWaitEndsWithTheProgram checks that Wait returns even if the program leaves a child that
// keeps the terminal open.
func TestWaitEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	terminal, err := Start(exec.CommandContext(t.Context(), "sh", "-c", "trap '' HUP; tail -f /dev/null & echo left"), 80, 24)
	if err != nil {
		t.Fatal(err)
	}
	if err := terminal.Wait(); err != nil {
		t.Error(err)
	}
	if raw := terminal.Raw(); !strings.Contains(raw, "left") {
		t.Errorf("the output is %q", raw)
	}
}

// TestStartOfNothing checks that Start closes the terminal if the program does not exist. It is
// not parallel, because no other terminal may be open.
func TestStartOfNothing(t *testing.T) {
	if _, err := Start(exec.CommandContext(t.Context(), filepath.Join(t.TempDir(), "gone")), 80, 24); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no open files: %v", err)
	}
	for _, file := range files {
		if name, err := os.Readlink(file); err == nil && (strings.HasPrefix(name, "/dev/ptmx") || strings.HasPrefix(name, "/dev/pts/")) {
			t.Errorf("%s is open", name)
		}
	}
}
