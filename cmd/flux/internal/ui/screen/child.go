package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

const (
	// outputLines is the maximum number of lines that are kept of the output of a command, and lineLength that of the bytes in a line.
	outputLines, lineLength = 10000, 8 << 10
	// endGrace is the time that a command has to end after an interrupt.
	endGrace = 2 * time.Second
)

// runner runs flux commands. The pages and actions of the dashboard are the commands of flux, so that both have the same results.
type runner struct {
	// program is the path of flux, global its flags that select the cluster and the user.
	program     string
	global, env []string
	send        func(tea.Msg)
	running     sync.WaitGroup
	next        int
}

// outputMsg is a part of the output of a run, and endedMsg its end.
type outputMsg struct {
	run  int
	text []byte
}

type endedMsg struct {
	run, code int
	err       error
}

// start runs a command until ctx ends, and returns the number of the run.
func (r *runner) start(ctx context.Context, args []string) int {
	r.next++
	run := r.next
	r.running.Go(func() {
		cmd := exec.CommandContext(ctx, r.program, append(args, r.global...)...)
		cmd.Env = r.env
		out := &sender{run: run, send: r.send}
		cmd.Stdout, cmd.Stderr = out, out
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = endGrace
		err := cmd.Run()
		end := endedMsg{run: run, err: err}
		var exited *exec.ExitError
		if errors.As(err, &exited) {
			end.code, end.err = exited.ExitCode(), nil
		}
		if ctx.Err() == nil {
			r.send(end)
		}
	})
	return run
}

// sender sends what is written to it. exec.Cmd writes from one goroutine, since both streams are the same writer.
type sender struct {
	run  int
	send func(tea.Msg)
}

var _ io.Writer = (*sender)(nil)

// Write implements io.Writer.
func (s *sender) Write(p []byte) (int, error) {
	s.send(outputMsg{s.run, bytes.Clone(p)})
	return len(p), nil
}

// transcript is the output of a run.
type transcript struct {
	lines []string
	rest  []byte
	cut   bool
}

// add adds a part of the output, and returns whether a line has been completed.
func (t *transcript) add(text []byte) bool {
	t.rest = append(t.rest, text...)
	end := bytes.LastIndexByte(t.rest, '\n')
	if end < 0 {
		return false
	}
	for line := range bytes.SplitSeq(t.rest[:end], []byte("\n")) {
		t.lines = append(t.lines, cleaned(string(line)))
	}
	t.rest = bytes.Clone(t.rest[end+1:])
	if more := len(t.lines) - outputLines; more > 0 {
		t.lines, t.cut = append([]string(nil), t.lines[more:]...), true
	}
	return true
}

// end adds the last line.
func (t *transcript) end() {
	if len(t.rest) > 0 {
		t.add([]byte("\n"))
	}
}

// last returns the last line that is not empty, without colors.
func (t *transcript) last() string {
	for i := len(t.lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(colors().ReplaceAllString(t.lines[i], "")); line != "" {
			return line
		}
	}
	return ""
}

// colors matches the escape sequences that set colors.
var colors = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*m`) }) //nolint:gochecknoglobals // compiled once

// cleaned returns a line with masked credentials, and without control characters other than colors.
func cleaned(line string) string {
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
