package screen

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/live"
)

// The styles use the 16 colors of the terminal, which are readable on its background, and attributes that remain without colors.
type styles struct{ title, strong, faint, selected, red, yellow, green, cyan lipgloss.Style }

func newStyles() styles {
	s := lipgloss.NewStyle()
	return styles{
		title: s.Bold(true), strong: s.Bold(true), faint: s.Faint(true), selected: s.Reverse(true),
		red: s.Foreground(lipgloss.Red), yellow: s.Foreground(lipgloss.Yellow), green: s.Foreground(lipgloss.Green), cyan: s.Foreground(lipgloss.Cyan),
	}
}

// mark returns the mark of a state, which shows it without colors, too.
func mark(s live.State) string {
	switch s {
	case live.Failed:
		return "✗"
	case live.Waiting, live.Reconciling:
		return "◎"
	case live.Suspended:
		return "‖"
	}
	return "✔"
}

func (s styles) of(state live.State) lipgloss.Style {
	switch state {
	case live.Failed:
		return s.red
	case live.Waiting, live.Reconciling:
		return s.yellow
	case live.Suspended:
		return s.faint
	}
	return s.green
}

// cell returns untrusted text in a cell of a width.
func cell(text string, width int) string {
	return filled(printable.Line(text), width)
}

// filled truncates or pads a line to a width.
func filled(line string, width int) string {
	line = ansi.Truncate(line, width, "…")
	return line + strings.Repeat(" ", max(0, width-ansi.StringWidth(line)))
}

// wrapped returns the lines of a text at a width, at most n.
func wrapped(text string, width, n int) []string {
	lines := strings.Split(ansi.Wrap(text, max(1, width), ""), "\n")
	if len(lines) > n {
		lines = append(lines[:n-1], ansi.Truncate(strings.Join(lines[n-1:], " "), width, "…"))
	}
	return lines
}

// sides returns a line with a left and a right part.
func sides(left, right string, width int) string {
	space := width - ansi.StringWidth(right)
	if space < 10 {
		return filled(left, width)
	}
	return filled(left, space) + right
}
