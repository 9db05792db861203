package output

import (
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/fluxkit/flux/internal/fold"
)

// Screen is a terminal that tables are shown on.
type Screen struct {
	// Width is its number of columns; 0 where lines are not cut.
	Width int
	// Colour paints what is not ready, and dims what is suspended.
	Colour bool
	// Fold shows the last column whole, on as many lines as it takes: in the
	// column where there is room, else below the row.
	Fold bool
}

const (
	gap = "  "
	// The last column gives way down to goodMessage, then the others down to
	// leastCell, then the last one again down to leastMessage. Where even that
	// is too wide lines wrap, and may as well say more.
	goodMessage, leastCell, leastMessage = 24, 10, 7
	// foldedMessage is how wide the last column has to be for text that is
	// folded in it, and below how far it stands in where it is not.
	foldedMessage, below = 40, 4
)

// whole are the columns whose cells are copied and pasted and so never cut.
var whole = []string{"NAMESPACE", "KIND", "NAME", "OBJECT", "WEBHOOK PATH"}

// Show prints the table for people: columns apart by spaces, lines cut to the
// screen's width, and colours where the screen has them.
func (t Table) Show(w io.Writer, headers bool, screen Screen) error {
	rows := t.Rows
	if headers {
		rows = append([][]string{t.Headers}, rows...)
	}
	widths := screen.fit(t.Headers, columnWidths(rows))
	var b strings.Builder
	for i, row := range rows {
		screen.write(&b, t.Headers, row, widths, headers && i == 0)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit makes the widths of the columns add up to the screen's as far as it can.
func (s Screen) fit(headers []string, widths []int) []int {
	if s.Width == 0 || len(widths) == 0 {
		return widths
	}
	widths = slices.Clone(widths)
	last := len(widths) - 1
	room := s.Width - len(gap)*last
	for _, width := range widths[:last] {
		room -= width
	}
	good := min(widths[last], goodMessage)
	if s.Fold && room < min(widths[last], foldedMessage) {
		good = 0
		defer func() { widths[last] = 0 }()
	}
	for ; room < good; room++ {
		widest := -1
		for i, width := range widths[:last] {
			if width > max(leastCell, utf8.RuneCountInString(headers[i])) && !slices.Contains(whole, headers[i]) && (widest < 0 || width > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	if room < leastMessage {
		room = goodMessage
	}
	widths[last] = min(widths[last], room)
	return widths
}

func (s Screen) write(b *strings.Builder, headers, row []string, widths []int, header bool) {
	suspended := slices.Index(headers, "SUSPENDED")
	dim := !header && suspended >= 0 && row[suspended] == "True"
	var line strings.Builder
	column := 0
	for i, cell := range row {
		last := i == len(row)-1
		cell = printable(cell)
		switch {
		case last && s.Fold && widths[i] == 0: // it comes below the row
			continue
		case last && s.Fold:
			cell = strings.TrimLeft(fold.Line(strings.Repeat(" ", column)+cell, column, s.Width), " ")
		case last:
			cell = cutEnd(cell, widths[i])
		case header || !slices.Contains(whole, headers[i]):
			cell = cutMiddle(cell, widths[i])
		}
		padding := ""
		if !last {
			padding = strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))) + gap
		}
		column += utf8.RuneCountInString(cell) + len(padding)
		if s.Colour && !header {
			cell = paint(headers[i], cell, dim)
		}
		line.WriteString(cell + padding)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	if end := row[len(row)-1]; s.Fold && !header && widths[len(row)-1] == 0 && end != "" {
		b.WriteString(fold.Line(strings.Repeat(" ", below)+printable(end), below, s.Width) + "\n")
	}
}

// paint colours a cell by what it says of the object.
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

// cutMiddle keeps both ends, more of the latter: that of a revision is the
// commit, that of a reference the name.
func cutMiddle(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 3 {
		return s
	}
	tail := (width - 1) * 2 / 3
	return string(runes[:width-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// printable keeps what an object says from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
