package ui

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Secret prompts for a text without echo. It returns ErrNoTerminal if there is no terminal, and
// stops waiting when ctx is done.
func (t *Terminal) Secret(ctx context.Context, question string) (string, error) {
	in, ok := t.in.(*os.File)
	if !t.interactive || !ok {
		return "", ErrNoTerminal
	}
	fd := int(in.Fd())
	defer t.pause()()
	before, err := term.GetState(fd)
	if err == nil {
		// ReadPassword disables the echo only when it starts, so text typed or pasted between the
		// prompt and its start would be shown.
		err = stopEcho(fd)
	}
	if err != nil {
		return "", fmt.Errorf("prompting on the terminal: %w", err)
	}
	fmt.Fprintf(t.err, "%s: ", printable.Text(question))
	type reply struct {
		text []byte
		err  error
	}
	// A read from a terminal cannot be canceled: when ctx is done, the goroutine
	// remains until the process exits.
	answer := make(chan reply, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		answer <- reply{text, err}
	}()
	var got reply
	select {
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	case got = <-answer:
	}
	if err := term.Restore(fd, before); err != nil {
		got.err = err
	}
	fmt.Fprintln(t.err)
	if got.err != nil {
		return "", fmt.Errorf("reading the answer: %w", got.err)
	}
	return string(got.text), nil
}
