package main

import (
	"strconv"

	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/ui"
)

// screen is the terminal that standard output is, or false where it is none.
// COLUMNS stands above what the terminal says of its width.
func (a *app) screen(noTrunc bool) (output.Screen, bool) {
	if !ui.IsTerminal(a.out) {
		return output.Screen{}, false
	}
	s := output.Screen{Width: ui.Width(a.out), Colour: a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"}
	if columns, err := strconv.Atoi(a.env("COLUMNS")); err == nil && columns > 0 {
		s.Width = columns
	}
	if noTrunc {
		s.Width = 0
	}
	return s, true
}
