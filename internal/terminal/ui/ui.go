// Package ui writes messages, progress and prompts to the error stream. The output of commands
// goes to standard output and does not use this package.
package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// ErrNoTerminal is returned by Confirm and Secret if there is no terminal to prompt on.
var ErrNoTerminal = errors.New("no terminal to prompt on")

// Terminal writes messages and prompts to the error stream.
type Terminal struct {
	// Prefix adds a prefix to each line of a message except the first.
	Prefix bool

	in          io.Reader
	err         io.Writer
	mu          sync.Mutex
	paint       bool
	interactive bool
	// columns is the width of err, 0 if it is not a terminal.
	columns int
	env     func(string) string
	// redraws reports whether lines can be overwritten, and shown is the currently shown line.
	redraws  bool
	progress []*Progress
	shown    string
	// prompting hides progress during a prompt.
	prompting bool
	// mask masks secrets.
	mask func(string) string
}

// New returns a Terminal for the streams.
func New(in io.Reader, err io.Writer, env func(string) string) *Terminal {
	return &Terminal{
		in:          in,
		err:         err,
		paint:       Colors(err, env),
		interactive: IsTerminal(in) && IsTerminal(err),

		columns: Columns(err, env),
		env:     env,
		redraws: IsTerminal(err) && env("TERM") != "dumb" && env("CI") == "",
	}
}

// Colors reports whether text on a stream is colored: on a terminal unless NO_COLOR, CLICOLOR=0
// or TERM=dumb is set, and everywhere with CLICOLOR_FORCE. See https://no-color.org and
// https://bixense.com/clicolors.
func Colors(stream any, env func(string) string) bool {
	force := env("CLICOLOR_FORCE")
	switch {
	case env("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return IsTerminal(stream) && env("CLICOLOR") != "0" && env("TERM") != "dumb"
}

// IsTerminal reports whether a stream is a terminal or a writer that wraps a terminal.
func IsTerminal(stream any) bool {
	f := file(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// file returns the file of a stream or of the writers that it wraps, or nil.
func file(stream any) *os.File {
	for {
		switch s := stream.(type) {
		case *os.File:
			return s
		case interface{ Unwrap() io.Writer }:
			stream = s.Unwrap()
		default:
			return nil
		}
	}
}

// masked returns a text with secrets masked.
func (t *Terminal) masked(text string) string {
	if t == nil || t.mask == nil {
		return text
	}
	return t.mask(text)
}

// Mask sets the function that masks secrets in messages.
func (t *Terminal) Mask(mask func(string) string) { t.mask = mask }

// Columns returns the width of a terminal, or 0 for other streams. The variable COLUMNS takes
// precedence.
func Columns(stream any, env func(string) string) int {
	if !IsTerminal(stream) {
		return 0
	}
	if columns, err := strconv.Atoi(env("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	width, _, err := term.GetSize(int(file(stream).Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Lines returns the height of a terminal, or 0 for other streams. The variable LINES takes
// precedence.
func Lines(stream any, env func(string) string) int {
	if !IsTerminal(stream) {
		return 0
	}
	if lines, err := strconv.Atoi(env("LINES")); err == nil && lines > 0 {
		return lines
	}
	_, height, err := term.GetSize(int(file(stream).Fd()))
	if err != nil {
		return 0
	}
	return height
}

// Action prints the current action.
func (t *Terminal) Action(format string, args ...any) { t.message("►", color.FgCyan, format, args) }

// Generate prints a message about content that is being generated.
func (t *Terminal) Generate(format string, args ...any) { t.message("✚", color.FgCyan, format, args) }

// Waiting prints the condition for which the command waits.
func (t *Terminal) Waiting(format string, args ...any) { t.message("◎", color.FgCyan, format, args) }

// Success prints a completed action.
func (t *Terminal) Success(format string, args ...any) { t.message("✔", color.FgGreen, format, args) }

// Warning prints a problem that does not stop the command.
func (t *Terminal) Warning(format string, args ...any) {
	t.message("⚠️", color.FgYellow, format, args)
}

// Failure prints an error. On a terminal, long lines are wrapped.
func (t *Terminal) Failure(format string, args ...any) {
	lines := strings.Split(t.text(format, args), "\n")
	for i, line := range lines {
		lines[i] = fit.Fold(line, hanging, t.columns-hanging)
	}
	t.message("✗", color.FgRed, "%s", []any{strings.Join(lines, "\n")})
}

// Stopped ends the line on which the terminal has printed ^C.
func (t *Terminal) Stopped() {
	if t.columns > 0 {
		t.Line("")
	}
}

// continuation is the prefix of continuation lines of a message in CI logs, where they would otherwise
// look like separate messages.
const continuation = "\n  | "

// messageMax is the maximum length of a message, which may contain errors for many objects.
const messageMax = 64 << 10

// hanging is the width of a glyph and the following space.
const hanging = 2

// Columns returns the width of the error stream, or 0 if it is not a terminal.
func (t *Terminal) Columns() int { return t.columns }

// Strong emphasizes a text if the terminal has colors.
func (t *Terminal) Strong(text string) string {
	if !t.paint {
		return text
	}
	return Strong(text)
}

// Strong emphasizes a text with color.
func Strong(text string) string {
	c := color.New(color.Bold, color.FgRed)
	c.EnableColor()
	return c.Sprint(text)
}

// Line writes a line without a glyph.
func (t *Terminal) Line(format string, args ...any) { t.Print(t.text(format, args)) }

// text formats a message with secrets masked. The arguments may be untrusted, so they are
// escaped: they cannot control the terminal or imitate messages.
func (t *Terminal) text(format string, args []any) string {
	fit := printable.Args(args)
	for i, arg := range fit {
		if s, ok := arg.(string); ok {
			fit[i] = ownLines(s)
		}
	}
	return t.masked(fmt.Sprintf(format, fit...))
}

// ownLines indents the lines after the first that look like the beginning of a message.
func ownLines(s string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines[1:] {
		if strings.HasPrefix(line, "⚠") || slices.ContainsFunc([]string{"►", "✚", "◎", "✔", "✗"}, func(glyph string) bool { return strings.HasPrefix(line, glyph) }) {
			lines[i+1] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Print writes lines that are already escaped and may contain colors.
func (t *Terminal) Print(lines string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	shown := t.shown
	t.clear()
	fmt.Fprintln(t.err, lines)
	if shown != "" {
		fmt.Fprint(t.err, shown)
		t.shown = shown
	}
}

// message writes a message. It is safe for concurrent use.
func (t *Terminal) message(glyph string, hue color.Attribute, format string, args []any) {
	if t.paint {
		c := color.New(hue)
		c.EnableColor()
		glyph = c.Sprint(glyph)
	}
	text := budget.Excerpt(t.text(format, args), messageMax)
	if t.Prefix {
		text = strings.ReplaceAll(text, "\n", continuation)
	}
	t.Print(glyph + " " + text)
}

// Ask prints a prompt and returns the line that the user types. It returns ErrNoTerminal if there is no terminal.
func (t *Terminal) Ask(question string) (string, error) {
	if !t.interactive {
		return "", ErrNoTerminal
	}
	defer t.pause()()
	fmt.Fprintf(t.err, "%s: ", t.masked(printable.Text(question)))
	answer, err := bufio.NewReader(t.in).ReadString('\n')
	if err != nil && answer == "" {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// Interactive reports whether the user can be prompted.
func (t *Terminal) Interactive() bool { return t.interactive }
