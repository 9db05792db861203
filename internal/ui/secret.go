package ui

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// Secret asks for something that is not shown while it is typed. Where nobody
// can answer it returns ErrNoTerminal.
func (t *Terminal) Secret(question string) (string, error) {
	in, ok := t.in.(*os.File)
	if !t.asks || !ok {
		return "", ErrNoTerminal
	}
	fmt.Fprintf(t.err, "%s: ", question)
	answer, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(t.err)
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return string(answer), nil
}
