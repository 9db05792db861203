package app

import (
	"context"
	"errors"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// Confirm prompts the user for yes or no; the default is no.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	answer, err := a.Ask(ctx, question+" [y/N]")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// Approve prompts for confirmation of a change. It returns an error if the user declines.
func Approve(ctx context.Context, a *App, question string) error {
	yes, err := a.Confirm(ctx, question)
	if err == nil && !yes {
		err = errors.New("nothing was changed")
	}
	return err
}

// Ask prompts the user for a line. It returns when ctx ends, so that Ctrl-C
// works during the prompt.
func (a *App) Ask(ctx context.Context, question string) (string, error) {
	type reply struct {
		text string
		err  error
	}
	// A read from a terminal cannot be canceled: when ctx ends the goroutine
	// remains until the process exits.
	answer := make(chan reply, 1)
	go func() {
		text, err := a.UI.Ask(question)
		answer <- reply{text, err}
	}()
	select {
	case <-ctx.Done():
		a.UI.Line("")
		return "", context.Cause(ctx)
	case got := <-answer:
		return got.text, got.err
	}
}

// Screen returns the dimensions and color support of standard output, or false if it is not a
// terminal.
func (a *App) Screen(noTrunc bool) (output.Screen, bool) {
	if !ui.IsTerminal(a.Out) {
		return output.Screen{}, false
	}
	s := output.Screen{Width: ui.Columns(a.Out, a.Env), Height: ui.Lines(a.Out, a.Env), Color: ui.Colors(a.Out, a.Env)}
	if noTrunc {
		s.Width = 0
	}
	return s, true
}

// TableStyle changes how a table is printed.
type TableStyle struct {
	NoHeader bool
	// NoTrunc disables truncation on a narrow terminal. Fold wraps long cells there.
	NoTrunc, Fold bool
}

// Table prints a table that fits the terminal. Other output has the format of Flux 2.9.
func (a *App) Table(t output.Table, style TableStyle) error {
	if a.Merge != nil {
		a.Flush() // text before the table
		return a.Merge(t, style)
	}
	screen, ok := a.Screen(style.NoTrunc)
	if !ok {
		return t.Write(a.Out, !style.NoHeader)
	}
	screen.Fold = style.Fold
	return t.Show(a.Out, !style.NoHeader, screen)
}

// Redraws reports whether a table on standard output can be redrawn in place.
func (a *App) Redraws() bool {
	screen, ok := a.Screen(false)
	return ok && a.Env("TERM") != "dumb" && screen.Width > 0 && screen.Height > 2
}
