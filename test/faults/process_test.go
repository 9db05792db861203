// Package faults_test runs flux as a process against a real Kubernetes API and injects
// faults: the server is replaced, forgets resource versions, rejects requests or is
// overloaded, and flux is interrupted or killed.
package faults_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testlimit"
)

// process is a running flux process.
type process struct {
	t      *testing.T
	line   string
	cmd    *exec.Cmd
	stdout *transcript
	stderr *transcript
	ended  chan struct{}
	err    error
	// temporary is its temporary directory.
	temporary string
}

// transcript is the output of a process so far.
type transcript struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	t.changed = make(chan struct{})
	return t.text.Write(p)
}

func (t *transcript) now() (text string, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String(), t.changed
}

func (t *transcript) String() string {
	text, _ := t.now()
	return text
}

// start runs flux until the test ends.
func (w *world) start(t *testing.T, kubeconfig string, args ...string) *process {
	t.Helper()
	return w.startIn(t, "", kubeconfig, args...)
}

// startIn runs flux in a directory, or in the test directory if it is "".
func (w *world) startIn(t *testing.T, folder, kubeconfig string, args ...string) *process {
	t.Helper()
	p := &process{t: t, line: "flux " + strings.Join(args, " "), stdout: newTranscript(), stderr: newTranscript(), ended: make(chan struct{}), temporary: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	p.cmd = exec.CommandContext(ctx, filepath.Join(w.bin, "flux"), args...)
	p.cmd.Env = environment(t, kubeconfig, "TMPDIR="+p.temporary)
	p.cmd.Dir = folder
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal, like in a pipeline
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	return p
}

// environment returns the environment of a process. Its home and its temporary directory are directories of
// the test, because a killed process leaves files.
func environment(t *testing.T, kubeconfig string, more ...string) []string {
	t.Helper()
	return append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir(), "TMPDIR="+t.TempDir()), more...)
}

func (p *process) fatalf(format string, args ...any) {
	p.t.Helper()
	p.t.Logf("%s\nstdout:\n%s\nstderr:\n%s", p.line, p.stdout, p.stderr)
	p.t.Fatalf(format, args...)
}

// until waits until the process has printed a text.
func (p *process) until(where *transcript, wanted string) {
	p.t.Helper()
	late := time.After(testlimit.Wait)
	for {
		text, changed := where.now()
		if strings.Contains(text, wanted) {
			return
		}
		select {
		case <-changed:
		case <-p.ended:
			if !strings.Contains(where.String(), wanted) {
				p.fatalf("exited without printing %q: %v", wanted, p.err)
			}
		case <-late:
			p.fatalf("does not print %q", wanted)
		}
	}
}

// exits waits for the exit of the process and checks the exit code.
func (p *process) exits(code int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testlimit.Wait):
		p.fatalf("does not exit")
	}
	got := 0
	var failed *exec.ExitError
	if errors.As(p.err, &failed) {
		got = failed.ExitCode()
	} else if p.err != nil {
		p.fatalf("%v", p.err)
	}
	if got != code {
		p.fatalf("exit code %d, want %d", got, code)
	}
}

// endsItsChildren waits until no child process is left.
func (p *process) endsItsChildren() {
	p.t.Helper()
	late := time.After(testlimit.Wait)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	start := time.Now()
	for {
		left := p.children()
		if len(left) == 0 {
			p.t.Logf("no process is left after %s", time.Since(start).Round(10*time.Millisecond))
			return
		}
		select {
		case <-look.C:
		case <-late:
			p.fatalf("left: %q", left)
		}
	}
}

// children returns the command lines of processes with the temporary directory of this one.
func (p *process) children() []string {
	p.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		p.t.Fatalf("no processes: %v", err)
	}
	var found []string
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(environment), "TMPDIR="+p.temporary) {
			continue // the process has exited, or was not started by this one
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // empty if it has ended meanwhile
		found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}

// interrupt sends SIGINT.
func (p *process) interrupt() {
	p.t.Helper()
	p.stops(os.Interrupt)
}

// stops sends a signal. The process waits for something that does not happen before
// testlimit.Wait, so its exit is due to the signal.
func (p *process) stops(by os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(by); err != nil {
		p.fatalf("%v", err)
	}
	p.exits(130)
}
