package e2e_test

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// following is a command that runs until it is interrupted.
type following struct {
	s      *story
	cmd    *exec.Cmd
	done   chan struct{}
	stderr strings.Builder
	mu     sync.Mutex
	lines  []string
	more   chan struct{}
}

// follow starts a flux command.
func (s *story) follow(kubeconfig string, args ...string) *following {
	s.Helper()
	f := &following{s: s, done: make(chan struct{}), more: make(chan struct{}, 1)}
	f.cmd = exec.CommandContext(s.Context(), lookPath(s.env, "flux"), args...)
	f.cmd.Env = append(slices.Clone(s.env), "KUBECONFIG="+kubeconfig)
	f.cmd.Stderr = &f.stderr
	stdout, err := f.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go f.read(stdout)
	return f
}

func (f *following) read(from io.Reader) {
	defer close(f.done)
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return // the command has exited; interrupt checks how
		}
		f.mu.Lock()
		f.lines = append(f.lines, strings.TrimSuffix(line, "\n"))
		f.mu.Unlock()
		select {
		case f.more <- struct{}{}:
		default:
		}
	}
}

// waits waits until enough accepts the printed lines.
func (f *following) waits(what string, enough func(lines []string) bool) {
	f.s.Helper()
	late := time.NewTimer(stepTime)
	defer late.Stop()
	for {
		f.mu.Lock()
		lines := slices.Clone(f.lines)
		f.mu.Unlock()
		if enough(lines) {
			return
		}
		select {
		case <-f.more:
		case <-f.done:
			f.s.Fatalf("%q has ended, waiting for %s:\n%s", f.cmd.Args, what, f.stderr.String())
		case <-late.C:
			f.s.Fatalf("%q does not show %s after %d lines:\n%s", f.cmd.Args, what, len(lines), f.stderr.String())
		}
	}
}

// interrupt sends SIGINT and returns the whole output and the exit code.
func (f *following) interrupt() ([]string, int) {
	f.s.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGINT); err != nil {
		f.s.Fatal(err)
	}
	<-f.done
	var exit *exec.ExitError
	if err := f.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		f.s.Fatal(err)
	}
	return f.lines, f.cmd.ProcessState.ExitCode()
}
