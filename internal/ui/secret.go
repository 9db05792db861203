package ui

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/fluxkit/flux/internal/printable"
)

// Secret asks for something that is not shown while it is typed. Where nobody
// can answer it returns ErrNoTerminal. The wait for the answer ends with ctx.
func (t *Terminal) Secret(ctx context.Context, question string) (string, error) {
	in, ok := t.in.(*os.File)
	if !t.asks || !ok {
		return "", ErrNoTerminal
	}
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("asking on the terminal: %w", err)
	}
	defer t.pause()()
	fmt.Fprintf(t.err, "%s: ", printable.Text(question))
	type reply struct {
		text []byte
		err  error
	}
	// Reading a terminal cannot be cut short, so on ctx the goroutine stays
	// until the process ends, which it does then.
	answer := make(chan reply, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		answer <- reply{text, err}
	}()
	var got reply
	select {
	case <-ctx.Done():
		got.err = context.Cause(ctx)
		if err := term.Restore(fd, before); err != nil {
			got.err = err
		}
	case got = <-answer:
	}
	fmt.Fprintln(t.err)
	if got.err != nil {
		return "", fmt.Errorf("reading the answer: %w", got.err)
	}
	return string(got.text), nil
}
