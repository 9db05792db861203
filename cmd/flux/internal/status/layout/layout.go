// Package layout formats text in sections with aligned columns.
package layout

import (
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// indent is the indentation of the rows.
const indent = "  "

// Text consists of sections that fit the terminal.
type Text struct {
	// Width is the terminal width, or 0 for unlimited lines.
	Width int
	color bool
	b     strings.Builder
}

// New returns a text for standard output.
func New(a *app.App) *Text {
	screen, _ := a.Screen(false)
	return &Text{Width: screen.Width, color: screen.Color}
}

// String returns the text.
func (t *Text) String() string { return t.b.String() }

// Write appends text as it is.
func (t *Text) Write(text string) { t.b.WriteString(text) }

// Title writes a bold word or name followed by a colored state.
func (t *Text) Title(name, state string, hue color.Attribute) {
	t.Write(t.paint(color.Bold, printable.Line(name)) + indent + t.paint(hue, printable.Line(state)) + "\n")
}

// Heading writes the title of a section after an empty line.
func (t *Text) Heading(title string) { t.Write("\n" + t.paint(color.Bold, title) + "\n") }

// Paragraph writes a text wrapped at the terminal width.
func (t *Text) Paragraph(text string) {
	t.Write(fit.Fold(indent+printable.Line(redact.Text(text)), len(indent), t.Width) + "\n")
}

// Lines writes a section with a line for each text, or nothing without texts.
func (t *Text) Lines(title string, lines []string) {
	var rows [][]string
	for _, line := range lines {
		rows = append(rows, []string{redact.Text(line)})
	}
	t.Section(title, rows)
}

// Section writes rows under a title. Long rows are truncated. Without rows, it writes nothing.
func (t *Text) Section(title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t.Heading(title)
	widths := make([]int, len(rows[0]))
	rows = slices.Clone(rows)
	for i, row := range rows {
		rows[i] = printable.Lines(row)
		for column, cell := range rows[i] {
			widths[column] = max(widths[column], fit.Width(cell))
		}
	}
	for _, row := range rows {
		line := indent
		for column, cell := range row {
			line += fit.Fill(cell, widths[column]) + indent
		}
		t.Write(fit.Cut(strings.TrimRight(line, " "), t.Width) + "\n")
	}
}

func (t *Text) paint(attribute color.Attribute, text string) string {
	if !t.color {
		return text
	}
	c := color.New(attribute)
	c.EnableColor()
	return c.Sprint(text)
}
