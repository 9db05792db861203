package output

import (
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/fluxkit/flux/internal/terminal/fit"
)

// Screen describes a terminal for tables.
type Screen struct {
	// Width is the number of columns, or 0 if it is unlimited.
	Width int
	// Height is the number of lines, or 0 if it is unknown.
	Height int
	// Color highlights objects that are not ready and dims suspended objects.
	Color bool
	// Fold wraps the last column instead of truncating it: within the column if it is wide enough,
	// and otherwise on lines after the row.
	Fold bool
}

// Show prints the table for a terminal: columns separated by spaces, lines truncated to the width
// of the screen, and colors if they are enabled.
func (t Table) Show(w io.Writer, headers bool, screen Screen) error {
	t = t.printable()
	columns := screen.fit(t.Headers, measured(t.Headers, t.Rows, headers))
	var b strings.Builder
	if headers {
		screen.head(&b, t.Headers, columns)
	}
	for _, row := range t.Rows {
		screen.write(&b, t.Headers, row, columns)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// head writes the headers.
func (s Screen) head(b *strings.Builder, headers []string, columns []layout) {
	var line strings.Builder
	for i, c := range columns {
		if !c.dropped {
			line.WriteString(fit.Fill(fit.CutMiddle(headed(headers[i], c.form), c.width), c.width) + gap)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

func (s Screen) write(b *strings.Builder, headers, row []string, columns []layout) {
	suspended := slices.Index(headers, "SUSPENDED")
	dim := suspended >= 0 && row[suspended] == "True"
	var line strings.Builder
	position := 0
	for i, c := range columns {
		if c.dropped {
			continue
		}
		cell := shortened(headers[i], row[i], c.form)
		switch {
		case i == len(row)-1 && s.Fold:
			cell = strings.TrimLeft(fit.Fold(strings.Repeat(" ", position)+cell, position, s.Width), " ")
		case i == len(row)-1, headers[i] == "SUSPEND REASON":
			cell = fit.CutWords(cell, c.width)
		default:
			cell = fit.CutMiddle(cell, c.width)
		}
		padding := strings.Repeat(" ", max(0, c.width-fit.Width(cell))) + gap
		position += fit.Width(cell) + len(padding)
		if s.Color {
			cell = paint(headers[i], cell, dim)
		}
		line.WriteString(cell + padding)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	if end := row[len(row)-1]; columns[len(row)-1].under && end != "" {
		b.WriteString(fit.Fold(strings.Repeat(" ", below)+end, below, s.Width) + "\n")
	}
}

// paint colors a cell by its value.
func paint(header, cell string, dim bool) string {
	var hue color.Attribute
	switch {
	case cell == "":
		return ""
	case header == "READY" && cell == "False":
		hue = color.FgRed
	case header == "READY" && cell == "Unknown", header == "TYPE" && cell == "Warning":
		hue = color.FgYellow
	case dim:
		hue = color.Faint
	default:
		return cell
	}
	c := color.New(hue)
	c.EnableColor()
	return c.Sprint(cell)
}
