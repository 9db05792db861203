package faults_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// TestLargeInput sends SIGTERM to commands that are reading large files, or an endless standard input. Without
// the signal, they would read for longer than testlimit.Wait. They must leave no files.
func TestLargeInput(t *testing.T) {
	t.Parallel()
	flux := filepath.Join(testcluster.Programs(t), "flux")
	dir := t.TempDir()
	zeros := filepath.Join(dir, "zeros") // a sparse file: packing it takes an hour
	check(t, os.WriteFile(zeros, nil, 0o600))
	check(t, os.Truncate(zeros, 1<<40))
	manifests := filepath.Join(dir, "manifests")
	check(t, os.Mkdir(manifests, 0o700))
	largest := filepath.Join(manifests, "0.yaml")
	check(t, os.WriteFile(largest, []byte(strings.Repeat("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n", 500_000)), 0o600))
	for i := range 4000 { // one minute for each hundred
		check(t, os.Link(largest, filepath.Join(manifests, fmt.Sprintf("%d.yaml", i+1))))
	}
	for name, row := range map[string]struct {
		args  string
		stdin bool
	}{
		"migrate":                 {"migrate --dry-run --path " + manifests, false},
		"build artifact":          {"build artifact --output OUT/a.tgz --path " + zeros, false},
		"push artifact":           {"push artifact oci://127.0.0.1:1/app:1 --source s --revision r --path " + zeros, false},
		"build artifact of stdin": {"build artifact --output OUT/a.tgz --path -", true},
		"push artifact of stdin":  {"push artifact oci://127.0.0.1:1/app:1 --source s --revision r --path -", true},
		"envsubst":                {"envsubst", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
			defer cancel()
			cmd := exec.CommandContext(ctx, flux, strings.Fields(strings.ReplaceAll(row.args, "OUT", out))...)
			cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + out}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			stdin, err := cmd.StdinPipe()
			check(t, err)
			check(t, cmd.Start())
			if row.stdin {
				go func() { _, _ = io.WriteString(stdin, strings.Repeat("line\n", 1<<20)) }() // ends with the process
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait() // the exit code is in ProcessState
			}()
			if !readsMuch(t, cmd.Process.Pid, ended) {
				t.Fatalf("exited early: %s", &said)
			}
			check(t, cmd.Process.Signal(syscall.SIGTERM))
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != 130 || ctx.Err() != nil {
				t.Errorf("exit code %d: %s", code, &said)
			}
			if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// readsMuch waits until a process has read two megabytes of its input.
func readsMuch(t *testing.T, pid int, ended <-chan struct{}) bool {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(testlimit.Wait)
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		var read int
		if err == nil {
			_, err = fmt.Sscanf(string(text), "rchar: %d", &read)
		}
		if err == nil && read > 2<<20 {
			return true
		}
		select {
		case <-look.C:
		case <-ended:
			return false
		case <-late:
			t.Fatal("the process does not read")
		}
	}
}
