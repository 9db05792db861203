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
	"testing"
	"time"
)

// following is a command that runs until it is interrupted.
type following struct {
	t      *testing.T
	cmd    *exec.Cmd
	done   chan struct{}
	stderr strings.Builder
	mu     sync.Mutex
	lines  []string
	more   chan struct{}
}

// follow starts a flux command.
func follow(sh *shell, args ...string) *following {
	sh.t.Helper()
	command := &following{t: sh.t, cmd: sh.command(sh.t.Context(), "flux", args...), done: make(chan struct{}), more: make(chan struct{}, 1)}
	command.cmd.Stderr = &command.stderr
	stdout, err := command.cmd.StdoutPipe()
	if err != nil {
		sh.t.Fatal(err)
	}
	if err := command.cmd.Start(); err != nil {
		sh.t.Fatal(err)
	}
	go command.read(stdout)
	return command
}

func (c *following) read(from io.Reader) {
	defer close(c.done)
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return // the command has exited; interrupt checks how
		}
		c.mu.Lock()
		c.lines = append(c.lines, strings.TrimSuffix(line, "\n"))
		c.mu.Unlock()
		select {
		case c.more <- struct{}{}:
		default:
		}
	}
}

// waits waits until enough accepts the printed lines.
func (c *following) waits(what string, enough func(lines []string) bool) {
	c.t.Helper()
	late := time.NewTimer(waitTime)
	defer late.Stop()
	for {
		c.mu.Lock()
		lines := slices.Clone(c.lines)
		c.mu.Unlock()
		if enough(lines) {
			return
		}
		last := strings.Join(lines[max(0, len(lines)-10):], "\n")
		select {
		case <-c.more:
		case <-c.done:
			c.t.Fatalf("%q has ended, waiting for %s:\n%s", c.cmd.Args, what, c.stderr.String())
		case <-late.C:
			c.t.Fatalf("%q does not show %s after %d lines, which end with\n%s\n%s", c.cmd.Args, what, len(lines), last, c.stderr.String())
		}
	}
}

// interrupt sends SIGINT and returns the whole output and the exit code.
func (c *following) interrupt() ([]string, int) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		c.t.Fatal(err)
	}
	<-c.done
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return c.lines, c.cmd.ProcessState.ExitCode()
}
