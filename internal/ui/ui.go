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
	"strings"
	"sync"

	"github.com/fatih/color"
	"golang.org/x/term"
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
}

// New returns a Terminal over the streams. Colour needs a terminal and an
// environment without NO_COLOR.
func New(in io.Reader, err io.Writer, env func(string) string) *Terminal {
	return &Terminal{
		in:    in,
		err:   err,
		paint: IsTerminal(err) && env("NO_COLOR") == "" && env("TERM") != "dumb",
		asks:  IsTerminal(in) && IsTerminal(err),
	}
}

// IsTerminal tells whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is the number of columns of a stream that is a terminal, 0 of any other.
func Width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
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

// Failure says what has failed.
func (t *Terminal) Failure(format string, args ...any) { t.say("✗", color.FgRed, format, args) }

// Line writes a line without a glyph.
func (t *Terminal) Line(format string, args ...any) {
	t.noted.Lock()
	defer t.noted.Unlock()
	fmt.Fprintf(t.err, format+"\n", args...)
}

// say is safe for several goroutines: a line is written whole.
func (t *Terminal) say(glyph string, hue color.Attribute, format string, args []any) {
	if t.paint {
		c := color.New(hue)
		c.EnableColor()
		glyph = c.Sprint(glyph)
	}
	t.Line("%s %s", glyph, fmt.Sprintf(format, args...))
}

// Confirm asks a question whose answer is yes or no, no unless told otherwise.
// Where nobody can answer it returns ErrNoTerminal.
func (t *Terminal) Confirm(question string) (bool, error) {
	if !t.asks {
		return false, ErrNoTerminal
	}
	fmt.Fprintf(t.err, "%s [y/N]: ", question)
	answer, err := bufio.NewReader(t.in).ReadString('\n')
	if err != nil && answer == "" {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// Interactive tells whether questions can be asked.
func (t *Terminal) Interactive() bool { return t.asks }
