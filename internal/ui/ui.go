// Package ui is the conversation with the user: progress with glyphs,
// questions and colours. What a command answers goes to standard output and
// is not its business.
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

	"github.com/fluxkit/flux/internal/fold"
	"github.com/fluxkit/flux/internal/printable"
)

// ErrNoTerminal is returned by Confirm where nobody can answer.
var ErrNoTerminal = errors.New("no terminal to ask on")

// Terminal writes progress to the error stream and asks on it.
type Terminal struct {
	in    io.Reader
	err   io.Writer
	noted sync.Mutex
	paint bool
	asks  bool
	// columns is the width of err, 0 where it is no terminal.
	columns int
	env     func(string) string
	// redraws says that a line can be written over, and shown is the one that is.
	redraws  bool
	progress []*Progress
	shown    string
	// asking keeps progress away while an answer is typed.
	asking bool
	// mask masks secrets.
	mask func(string) string
}

// New returns a Terminal over the streams. Colour needs a terminal and an
// environment without NO_COLOR.
func New(in io.Reader, err io.Writer, env func(string) string) *Terminal {
	return &Terminal{
		in:    in,
		err:   err,
		paint: IsTerminal(err) && env("NO_COLOR") == "" && env("TERM") != "dumb",
		asks:  IsTerminal(in) && IsTerminal(err),

		columns: Columns(err, env),
		env:     env,
		redraws: IsTerminal(err) && env("TERM") != "dumb" && env("CI") == "",
	}
}

// IsTerminal reports whether a stream is a terminal, or a writer over one.
func IsTerminal(stream any) bool {
	f := file(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// file is the file that a stream is, or that a writer ends in; nil without one.
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

// masked returns a text without secrets.
func (t *Terminal) masked(text string) string {
	if t == nil || t.mask == nil {
		return text
	}
	return t.mask(text)
}

// Mask sets what messages pass before they are shown.
func (t *Terminal) Mask(mask func(string) string) { t.mask = mask }

// Columns is the width of a stream that is a terminal, 0 of any other. The
// variable COLUMNS stands above what the terminal says.
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

// Lines is the height of a stream that is a terminal, 0 of any other. The
// variable LINES overrides what the terminal says.
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

// Action says what is being done.
func (t *Terminal) Action(format string, args ...any) { t.say("►", color.FgCyan, format, args) }

// Generate says what is being generated.
func (t *Terminal) Generate(format string, args ...any) { t.say("✚", color.FgCyan, format, args) }

// Waiting says what is being waited for.
func (t *Terminal) Waiting(format string, args ...any) { t.say("◎", color.FgCyan, format, args) }

// Success says what is done.
func (t *Terminal) Success(format string, args ...any) { t.say("✔", color.FgGreen, format, args) }

// Warning says what deserves attention but stops nothing.
func (t *Terminal) Warning(format string, args ...any) { t.say("⚠️", color.FgYellow, format, args) }

// Failure says what has failed; on a terminal a long line is folded.
func (t *Terminal) Failure(format string, args ...any) {
	lines := strings.Split(t.text(format, args), "\n")
	for i, line := range lines {
		lines[i] = fold.Line(line, hanging, t.columns-hanging)
	}
	t.say("✗", color.FgRed, "%s", []any{strings.Join(lines, "\n")})
}

// Stopped ends the line on which a terminal shows that Ctrl-C was typed.
func (t *Terminal) Stopped() {
	if t.columns > 0 {
		t.Line("")
	}
}

// hanging is the width of a glyph and the space behind it.
const hanging = 2

// Columns is the width of the terminal that the conversation is on, 0 where it
// is on none.
func (t *Terminal) Columns() int { return t.columns }

// Strong makes a text stand out where it can be painted.
func (t *Terminal) Strong(text string) string {
	if !t.paint {
		return text
	}
	return Strong(text)
}

// Strong paints what has to stand out.
func Strong(text string) string {
	c := color.New(color.Bold, color.FgRed)
	c.EnableColor()
	return c.Sprint(text)
}

// Line writes a line without a glyph.
func (t *Terminal) Line(format string, args ...any) { t.Print(t.text(format, args)) }

// text formats a message without secrets. What comes from outside, which is in the arguments,
// can neither control the terminal nor look like a message of its own.
func (t *Terminal) text(format string, args []any) string {
	fit := printable.Args(args)
	for i, arg := range fit {
		if s, ok := arg.(string); ok {
			fit[i] = ownLines(s)
		}
	}
	return t.masked(fmt.Sprintf(format, fit...))
}

// ownLines indents the lines after the first that begin as messages do.
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

// Print writes lines whose parts are fit to be printed, and which may be in colour.
func (t *Terminal) Print(lines string) {
	t.noted.Lock()
	defer t.noted.Unlock()
	shown := t.shown
	t.clear()
	fmt.Fprintln(t.err, lines)
	if shown != "" {
		fmt.Fprint(t.err, shown)
		t.shown = shown
	}
}

// say is safe for several goroutines: a line is written whole.
func (t *Terminal) say(glyph string, hue color.Attribute, format string, args []any) {
	if t.paint {
		c := color.New(hue)
		c.EnableColor()
		glyph = c.Sprint(glyph)
	}
	t.Print(glyph + " " + t.text(format, args))
}

// Confirm asks a question whose answer is yes or no, no unless told otherwise.
// Where nobody can answer it returns ErrNoTerminal.
func (t *Terminal) Confirm(question string) (bool, error) {
	if !t.asks {
		return false, ErrNoTerminal
	}
	defer t.pause()()
	fmt.Fprintf(t.err, "%s [y/N]: ", t.masked(printable.Text(question)))
	answer, err := bufio.NewReader(t.in).ReadString('\n')
	if err != nil && answer == "" {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// Interactive tells whether questions can be asked.
func (t *Terminal) Interactive() bool { return t.asks }
