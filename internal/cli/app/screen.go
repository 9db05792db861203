package app

import (
	"context"

	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/ui"
)

// Confirm asks a question; the wait for the answer ends with ctx, so that
// Ctrl-C works while a question stands.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	type reply struct {
		yes bool
		err error
	}
	// Reading a terminal cannot be cut short, so on ctx the goroutine stays
	// until the process ends, which it does then.
	answer := make(chan reply, 1)
	go func() {
		yes, err := a.UI.Confirm(question)
		answer <- reply{yes, err}
	}()
	select {
	case <-ctx.Done():
		a.UI.Line("")
		return false, context.Cause(ctx)
	case got := <-answer:
		return got.yes, got.err
	}
}

// Screen is the terminal that standard output is, or false where it is none.
func (a *App) Screen(noTrunc bool) (output.Screen, bool) {
	if !ui.IsTerminal(a.Out) {
		return output.Screen{}, false
	}
	s := output.Screen{Width: ui.Columns(a.Out, a.Env), Height: ui.Lines(a.Out, a.Env), Colour: a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb"}
	if noTrunc {
		s.Width = 0
	}
	return s, true
}

// Redraws reports whether a table on standard output can change in place.
func (a *App) Redraws() bool {
	screen, ok := a.Screen(false)
	return ok && a.Env("TERM") != "dumb" && screen.Width > 0 && screen.Height > 2
}
