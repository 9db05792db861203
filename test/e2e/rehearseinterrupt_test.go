package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// interruptStart interrupts a rehearsal while the sandboxes start.
func interruptStart(sh *shell) {
	interrupted := startRehearsal(sh, "starting a sandbox")
	if err := interrupted.Process.Signal(os.Interrupt); err != nil {
		sh.t.Fatal(err)
	}
	checkInterrupted(sh.t, interrupted)
}

// interruptReconciling interrupts a rehearsal while the controllers reconcile. Only a second interrupt ends the
// process immediately; further termination signals do not.
func interruptReconciling(sh *shell) {
	terminated := startRehearsal(sh, "reconciling")
	ended, end := context.WithCancel(sh.t.Context())
	var sender sync.WaitGroup
	sender.Go(func() {
		for ended.Err() == nil {
			_ = terminated.Process.Signal(syscall.SIGTERM) // fails once the process has ended
			select {
			case <-ended.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	checkInterrupted(sh.t, terminated)
	end()
	sender.Wait()
}

// startRehearsal starts a rehearsal, and returns when it has written a text to standard error.
func startRehearsal(sh *shell, text string) *exec.Cmd {
	sh.t.Helper()
	cmd := sh.in(writeFleet(sh, nil)).command(sh.t.Context(), "flux", "rehearse", "--to=2.10")
	log := &awaited{text: text, seen: make(chan struct{})}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		sh.t.Fatal(err)
	}
	select {
	case <-log.seen:
	case <-deadline(sh.t):
		_ = cmd.Process.Kill() // it may have exited
		_ = cmd.Wait()
		sh.t.Fatalf("%q was not reached:\n%s", text, log.all)
	}
	return cmd
}

// checkInterrupted waits until a command has exited because of a signal.
func checkInterrupted(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	const interrupted = 130
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != interrupted {
		t.Errorf("%q ends with %v", cmd.Args, err)
	}
}

// awaited closes seen when a text is written.
type awaited struct {
	text string
	all  []byte
	seen chan struct{}
}

// Write implements io.Writer.
func (w *awaited) Write(p []byte) (int, error) {
	before := strings.Contains(string(w.all), w.text)
	w.all = append(w.all, p...)
	if !before && strings.Contains(string(w.all), w.text) {
		close(w.seen)
	}
	return len(p), nil
}
