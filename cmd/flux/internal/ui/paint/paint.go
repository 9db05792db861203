// Package paint renders colors and cells of the dashboard.
package paint

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/live"
)

// Styles are the 16 terminal colors, which are readable on its background, and text attributes, which also
// work without colors.
type Styles struct{ Strong, Faint, Selected, Red, Yellow, Green, Cyan lipgloss.Style }

// New returns the styles.
func New() Styles {
	s := lipgloss.NewStyle()
	return Styles{
		Strong: s.Bold(true), Faint: s.Faint(true), Selected: s.Reverse(true),
		Red: s.Foreground(lipgloss.Red), Yellow: s.Foreground(lipgloss.Yellow), Green: s.Foreground(lipgloss.Green), Cyan: s.Foreground(lipgloss.Cyan),
	}
}

// Mark returns the symbol of a state, which also works without colors.
func Mark(s live.State) string {
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

// Of returns the style of a state.
func (s Styles) Of(state live.State) lipgloss.Style {
	switch state {
	case live.Failed:
		return s.Red
	case live.Waiting, live.Reconciling:
		return s.Yellow
	case live.Suspended:
		return s.Faint
	}
	return s.Green
}

// Cell escapes untrusted text, and truncates or pads it to a width.
func Cell(text string, width int) string {
	return Filled(printable.Line(text), width)
}

// Filled truncates or pads a line to a width.
func Filled(line string, width int) string {
	line = ansi.Truncate(line, width, "…")
	return line + strings.Repeat(" ", max(0, width-ansi.StringWidth(line)))
}

// Wrapped wraps text at a width and returns at most n lines.
func Wrapped(text string, width, n int) []string {
	lines := strings.Split(ansi.Wrap(text, max(1, width), ""), "\n")
	if len(lines) > n {
		lines = append(lines[:n-1], ansi.Truncate(strings.Join(lines[n-1:], " "), width, "…"))
	}
	return lines
}

// Sides returns a line with left-aligned and right-aligned text.
func Sides(left, right string, width int) string {
	space := width - ansi.StringWidth(right)
	if space < 10 {
		return Filled(left, width)
	}
	return Filled(left, space) + right
}
