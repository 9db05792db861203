package output

import (
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"

	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Stream prints rows one by one after a single header. A column keeps its width and grows only if a
// cell requires more space.
type Stream struct {
	w        io.Writer
	headers  []string
	widths   []int
	measures []measure
	screen   func() (Screen, bool)
}

// roomFor holds the minimum widths of columns whose cells change.
var roomFor = map[string]int{
	"NAME": 16, "READY": 7, "SUSPENDED": 9, "REVISION": 20, "TAG": 10,
	"LAST SCAN": 20, "LAST RUN": 20, "LAST HANDLED": 12, "AGE": 5,
	"TYPE": 7, "REASON": 23, "OBJECT": 28,
}

// NewStream returns a stream that prints to w. It calls screen for each row, because the window
// may be resized. screen returns false if w is not a terminal.
func NewStream(w io.Writer, headers []string, screen func() (Screen, bool)) *Stream {
	return &Stream{w: w, headers: headers, widths: make([]int, len(headers)), measures: measured(headers, nil, true), screen: screen}
}

// Begin prints the header, if header is true, and the first rows.
func (s *Stream) Begin(rows [][]string, header bool) error {
	rows = Table{Rows: rows}.printable().Rows
	for i, h := range s.headers {
		s.widths[i] = max(fit.Width(h), roomFor[h])
		s.reserve(i, s.widths[i])
	}
	// The width is limited so that a later long message does not make other columns narrower.
	last := len(s.widths) - 1
	s.widths[last] = goodMessage
	s.reserve(last, goodMessage)
	for _, row := range rows {
		s.grow(row)
	}
	var b strings.Builder
	if header {
		s.head(&b)
	}
	for _, row := range rows {
		s.write(&b, row)
	}
	_, err := io.WriteString(s.w, b.String())
	return err
}

// reserve keeps space for later cells.
func (s *Stream) reserve(column, width int) {
	if s.headers[column] == "SUSPENDED" {
		return // its values have known widths
	}
	for form := range forms {
		s.measures[column].widths[form] = max(s.measures[column].widths[form], width-5*form)
	}
}

// Add prints a row.
func (s *Stream) Add(row []string) error {
	row = printable.Lines(row)
	s.grow(row)
	var b strings.Builder
	s.write(&b, row)
	_, err := io.WriteString(s.w, b.String())
	return err
}

func (s *Stream) grow(row []string) {
	for i, cell := range row {
		s.widths[i] = max(s.widths[i], fit.Width(cell))
		s.measures[i].take(s.headers[i], cell)
	}
}

func (s *Stream) head(b *strings.Builder) {
	if screen, ok := s.screen(); ok {
		screen.head(b, s.headers, screen.fit(s.headers, s.measures))
		return
	}
	table := s.table(b)
	table.SetHeader(s.headers)
	table.Render()
}

func (s *Stream) write(b *strings.Builder, row []string) {
	if screen, ok := s.screen(); ok {
		screen.write(b, s.headers, row, screen.fit(s.headers, s.measures))
		return
	}
	table := s.table(b)
	table.Append(row)
	table.Render()
}

// table returns a table for one row with the current widths. The last cell is not padded.
func (s *Stream) table(b *strings.Builder) *tablewriter.Table {
	table := newTable(b)
	for i, width := range s.widths[:len(s.widths)-1] {
		table.SetColMinWidth(i, width)
	}
	return table
}
