// Package output prints the results of commands as tables or in the -o formats of cli-runtime.
package output

import (
	"io"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"
	"github.com/olekukonko/tablewriter"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Table holds headers and rows of text. Each row has as many cells as there are headers.
type Table struct {
	Headers []string
	Rows    [][]string
}

// Write prints the table for pipes in the format of Flux 2.9: cells are padded to the width of the
// column and followed by a tab, except for the last header, which is followed by a space. If
// headers are omitted, their width is ignored. Show prints tables for terminals.
func (t Table) Write(w io.Writer, headers bool) error {
	var b strings.Builder
	table := newTable(&b)
	if headers {
		table.SetHeader(t.Headers)
	}
	table.AppendBulk(t.printable().Rows)
	table.Render()
	_, err := io.WriteString(w, b.String())
	return err
}

// sameWidths makes the width of characters independent of the locale: by default, ambiguous
// characters are wide in East Asian locales, but the bytes in a pipe must not depend on the locale.
var sameWidths = sync.OnceFunc(func() { runewidth.DefaultCondition.EastAsianWidth = false }) //nolint:gochecknoglobals // a sync.Once that is used before the first table

// newTable returns a table writer for the output format of Flux 2.9.
func newTable(b *strings.Builder) *tablewriter.Table {
	sameWidths()
	table := tablewriter.NewWriter(b)
	table.SetAutoWrapText(false)
	table.SetAutoFormatHeaders(false)
	table.SetHeaderAlignment(tablewriter.ALIGN_LEFT)
	table.SetAlignment(tablewriter.ALIGN_LEFT)
	table.SetColumnSeparator("")
	table.SetRowSeparator("")
	table.SetHeaderLine(false)
	table.SetBorder(false)
	table.SetTablePadding("\t")
	table.SetNoWhiteSpace(true)
	return table
}

// printable returns the table with single-line cells without control characters.
func (t Table) printable() Table {
	fit := Table{Headers: t.Headers, Rows: make([][]string, len(t.Rows))}
	for i, row := range t.Rows {
		fit.Rows[i] = printable.Lines(row)
	}
	return fit
}
