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
	s := output.Screen{Width: ui.Columns(a.out, a.env), Colour: a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"}
	if noTrunc {
		s.Width = 0
	}
	return s, true
}
