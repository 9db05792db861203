package output

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/fluxkit/flux/internal/terminal/fold"
)

// Screen describes a terminal for tables.
type Screen struct {
	// Width is the number of columns, or 0 if it is unlimited.
	Width int
	// Height is the number of lines, or 0 if it is unknown.
	Height int
	// Color paints objects that are not ready, and dims suspended ones.
	Color bool
	// Fold wraps the last column instead of truncating it: within the column if it is wide enough,
	// and otherwise on lines after the row.
	Fold bool
}

// Show prints the table for a terminal: columns separated by spaces, lines truncated to the width
// of the screen, and colors if it has them.
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
			line.WriteString(padded(cutMiddle(headed(headers[i], c.form), c.width), c.width) + gap)
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
		cell, width := shortened(headers[i], row[i], c.form), c.width
		switch {
		case i == len(row)-1 && s.Fold:
			cell = strings.TrimLeft(fold.Line(strings.Repeat(" ", position)+cell, position, s.Width), " ")
		case i == len(row)-1, headers[i] == "SUSPEND REASON":
			cell = cutEnd(cell, width)
		case !slices.Contains(whole, headers[i]):
			cell = cutMiddle(cell, width)
		}
		padding := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell))) + gap
		position += utf8.RuneCountInString(cell) + len(padding)
		if s.Color {
			cell = paint(headers[i], cell, dim)
		}
		line.WriteString(cell + padding)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	if end := row[len(row)-1]; columns[len(row)-1].under && end != "" {
		b.WriteString(fold.Line(strings.Repeat(" ", below)+end, below, s.Width) + "\n")
	}
}

func padded(cell string, width int) string {
	return cell + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
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

func cutEnd(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 1 {
		return s
	}
	return strings.TrimRight(string(runes[:width-1]), " ") + "…"
}

// cutMiddle truncates a string in the middle. It keeps more of the end, which contains the commit
// of a revision and the name of a reference.
func cutMiddle(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 3 {
		return s
	}
	tail := (width - 1) * 2 / 3
	return string(runes[:width-1-tail]) + "…" + string(runes[len(runes)-tail:])
}
