package output

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Stream prints the rows of a table as they come, below one header. Columns
// keep their widths and grow only when a cell needs more.
type Stream struct {
	w       io.Writer
	headers []string
	widths  []int
	screen  func() (Screen, bool)
}

// roomFor is what columns whose contents change get beforehand.
var roomFor = map[string]int{
	"NAME": 16, "READY": 7, "SUSPENDED": 9, "REVISION": 20, "TAG": 10,
	"LAST SCAN": 20, "LAST RUN": 20, "LAST HANDLED": 12, "AGE": 5,
	"TYPE": 7, "REASON": 23, "OBJECT": 28,
}

// NewStream prints to w. It asks screen for every row, since a window may
// change its size; screen says false where w is no terminal.
func NewStream(w io.Writer, headers []string, screen func() (Screen, bool)) *Stream {
	return &Stream{w: w, headers: headers, widths: make([]int, len(headers)), screen: screen}
}

// Begin prints the rows that there are at first, below the header if there is to be one.
func (s *Stream) Begin(rows [][]string, header bool) error {
	for i, h := range s.headers {
		s.widths[i] = max(utf8.RuneCountInString(h), roomFor[h])
	}
	// A long message that comes later must not take room from the others.
	s.widths[len(s.widths)-1] = goodMessage
	for _, row := range rows {
		s.grow(row)
	}
	if header {
		rows = append([][]string{s.headers}, rows...)
	}
	var b strings.Builder
	for i, row := range rows {
		s.write(&b, row, header && i == 0)
	}
	_, err := io.WriteString(s.w, b.String())
	return err
}

// Add prints one more row.
func (s *Stream) Add(row []string) error {
	s.grow(row)
	var b strings.Builder
	s.write(&b, row, false)
	_, err := io.WriteString(s.w, b.String())
	return err
}

func (s *Stream) grow(row []string) {
	for i, cell := range row {
		s.widths[i] = max(s.widths[i], utf8.RuneCountInString(cell))
	}
}

// write leaves the last column as it is: it needs no room for what follows.
func (s *Stream) write(b *strings.Builder, row []string, header bool) {
	last := len(s.widths) - 1
	if screen, ok := s.screen(); ok {
		screen.write(b, s.headers, row, screen.fit(s.headers, s.widths), header)
		return
	}
	widths := append([]int{}, s.widths...)
	widths[last] = utf8.RuneCountInString(row[last])
	end := "\t"
	if header {
		end = " "
	}
	writeRow(b, row, widths, end)
}
