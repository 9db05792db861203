//go:build unix

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// TestClose checks that a sandbox that cannot be stopped ends nevertheless: the file that it inherited is closed, although
// this program goes on.
func TestClose(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	program, ended := filepath.Join(dir, "program"), filepath.Join(dir, "ended")
	// The program starts one that reads the inherited file to its end, fails, and cannot stop.
	script := "#!/bin/sh\n[ $1 = up ] && { { cat <&3; echo ended >" + ended + "; } >/dev/null 2>&1 & }\necho \"$1 fails\" >&2\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(ended, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.Start(t.Context(), program, sandbox.Options{})
	if err == nil || !strings.Contains(err.Error(), "up fails") || !strings.Contains(err.Error(), "down fails") {
		t.Errorf("starting: %v", err)
	}
	read := make(chan string, 1)
	go func() { // opening the pipe waits for the program
		text, err := os.ReadFile(ended)
		read <- fmt.Sprint(string(text), err)
	}()
	select {
	case text := <-read:
		if text != "ended\n<nil>" {
			t.Error(text)
		}
	case <-time.After(testlimit.Wait):
		t.Error("the inherited file is open after Start has failed")
	}
}
