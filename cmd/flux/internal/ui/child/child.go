// Package child runs flux commands for the pages and actions of the dashboard, so that both have the same
// results.
package child

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

const (
	// outputLines is the maximum number of output lines that are kept, lineLength the maximum bytes per line.
	outputLines, lineLength = 10000, 8 << 10
	// endGrace is the time for an interrupted command to exit.
	endGrace = 2 * time.Second
)

// Runner runs flux commands.
type Runner struct {
	// Program is the path of flux, Global are its flags that select the cluster and the user.
	Program     string
	Global, Env []string
	// Send sends Output and End messages.
	Send func(tea.Msg)
	// Crashed is called for panics of goroutines started by Go.
	Crashed func(problem any, stack []byte)

	running sync.WaitGroup
	last    int
}

// Output is a part of the output of a run.
type Output struct {
	Run  int
	Text []byte
}

// End is the end of a run. Err is nil if the command could be started.
type End struct {
	Run, Code int
	Err       error
}

// Go calls f in a goroutine. A panic in it would end the program before the terminal is restored.
func (r *Runner) Go(f func()) {
	r.running.Go(func() {
		defer func() {
			if problem := recover(); problem != nil {
				r.Crashed(problem, debug.Stack())
			}
		}()
		f()
	})
}

// Wait waits until the goroutines have ended, but not for one that hangs.
func (r *Runner) Wait() {
	ended := make(chan struct{})
	go func() {
		r.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * endGrace):
	}
}

// Start runs a command until ctx ends, and returns the number of the run.
func (r *Runner) Start(ctx context.Context, args []string) int {
	r.last++
	run := r.last
	r.Go(func() {
		cmd := exec.CommandContext(ctx, r.Program, append(args, r.Global...)...)
		cmd.Env = r.Env
		out := sender(func(text []byte) { r.Send(Output{run, text}) })
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = endGrace
		err := cmd.Run()
		end := End{Run: run, Err: err}
		var exited *exec.ExitError
		if errors.As(err, &exited) {
			end.Code, end.Err = exited.ExitCode(), nil
		}
		if ctx.Err() == nil {
			r.Send(end)
		}
	})
	return run
}

// sender sends written output. exec.Cmd writes from one goroutine, because both streams have the same writer.
type sender func(text []byte)

// Write implements io.Writer.
func (s *sender) Write(p []byte) (int, error) {
	(*s)(bytes.Clone(p))
	return len(p), nil
}

// Transcript is the output of a run.
type Transcript struct {
	// Lines have no control characters other than colors.
	Lines []string

	rest []byte
}

// Add adds a part of the output.
func (t *Transcript) Add(text []byte) {
	t.rest = append(t.rest, text...)
	end := bytes.LastIndexByte(t.rest, '\n')
	if end < 0 {
		t.rest = t.rest[:min(len(t.rest), 2*lineLength)] // the rest of the line would not be kept
		return
	}
	for line := range bytes.SplitSeq(t.rest[:end], []byte("\n")) {
		t.Lines = append(t.Lines, Cleaned(string(line)))
	}
	t.rest = bytes.Clone(t.rest[end+1:])
	if more := len(t.Lines) - outputLines; more > 0 {
		t.Lines = slices.Clone(t.Lines[more:])
	}
}

// End adds the last line.
func (t *Transcript) End() {
	if len(t.rest) > 0 {
		t.Add([]byte("\n"))
	}
}

// Last returns the last line that is not empty, without colors.
func (t *Transcript) Last() string {
	for i := len(t.Lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(colors().ReplaceAllString(t.Lines[i], "")); line != "" {
			return line
		}
	}
	return ""
}

// colors matches the escape sequences that set colors.
var colors = lazy.Regexp(`\x1b\[[0-9;]*m`)

// Cleaned returns a line with masked credentials, and without control characters other than colors.
func Cleaned(line string) string {
	line = redact.Text(budget.Excerpt(strings.TrimSuffix(line, "\r"), lineLength))
	var b strings.Builder
	at, painted := 0, false
	for _, m := range colors().FindAllStringIndex(line, -1) {
		b.WriteString(printable.Line(line[at:m[0]]) + line[m[0]:m[1]])
		at, painted = m[1], true
	}
	b.WriteString(printable.Line(line[at:]))
	if painted {
		b.WriteString("\x1b[m")
	}
	return b.String()
}
