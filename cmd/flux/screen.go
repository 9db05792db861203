package main

import (
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/ui"
)

// screen is the terminal that standard output is, or false where it is none.
func (a *app) screen(noTrunc bool) (output.Screen, bool) {
	if !ui.IsTerminal(a.out) {
		return output.Screen{}, false
	}
	s := output.Screen{Width: ui.Columns(a.out, a.env), Height: ui.Lines(a.out, a.env), Colour: a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"}
	if noTrunc {
		s.Width = 0
	}
	return s, true
}

// redraws reports whether a table on standard output can change in place.
func (a *app) redraws() bool {
	screen, ok := a.screen(false)
	return ok && a.env("TERM") != "dumb" && screen.Width > 0 && screen.Height > 2
}
