// Package output prints the results of commands: tables, and the -o formats of cli-runtime.
package output

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/printable"
)

// Table holds headers and rows of text. Each row has as many cells as there are headers.
type Table struct {
	Headers []string
	Rows    [][]string
}

// Write prints the table for pipes, as Flux 2.9 does: cells padded to the width of the column,
// each followed by a tab, except the last header, which is followed by a space. Without headers,
// their width is ignored.
func (t Table) Write(w io.Writer, headers bool) error {
	rows := t.printable().Rows
	if headers {
		rows = append([][]string{t.Headers}, rows...)
	}
	widths := columnWidths(rows)
	var b strings.Builder
	for i, row := range rows {
		end := "\t"
		if headers && i == 0 {
			end = " "
		}
		writeRow(&b, row, widths, end)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable returns the table with cells on one line, without control characters.
func (t Table) printable() Table {
	fit := Table{Headers: t.Headers, Rows: make([][]string, len(t.Rows))}
	for i, row := range t.Rows {
		fit.Rows[i] = printable.Lines(row)
	}
	return fit
}

func writeRow(b *strings.Builder, row []string, widths []int, end string) {
	for i, cell := range row {
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		if i < len(row)-1 {
			b.WriteByte('\t')
		}
	}
	b.WriteString(end + "\n")
}

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}
