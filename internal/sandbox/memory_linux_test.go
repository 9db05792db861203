package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fluxkit/flux/internal/sandbox"
)

// TestMemoryLimit checks that the error of a sandbox without memory has the limit and the reason of the crash, and that of
// another failure has no limit.
func TestMemoryLimit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	program := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\n[ $1 = up ] || exit 0\necho 'the end of etcd.log:\n  panic: cannot allocate memory\n\n  goroutine 1 [running]:\n  main.go:7 +0x5' >&2\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &before); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limit uint64
		names bool
	}{{2500 << 20, true}, {before.Cur, false}} {
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: c.limit, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		_, err := sandbox.Start(t.Context(), program, sandbox.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), ": panic: cannot allocate memory") || strings.Contains(err.Error(), "ulimit -v) is 2500 MiB") != c.names {
			t.Errorf("with a limit of %d: %v", c.limit, err)
		}
	}
}
