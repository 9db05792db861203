package get

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/get/columns"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// sink prints the entries of a watch.
type sink interface {
	begin(entries []entry) error
	// add prints a change. If an entry is not kept, it no longer matches the query.
	add(e entry, kept, deleted bool) error
	// draw redraws the screen, completely if its size has changed.
	draw(resized bool) error
	// beside prints text between the entries.
	beside(write func())
}

func newSink(a *app.App, q *query) (sink, error) {
	if q.printsObjects() {
		records, err := output.NewRecords(a.Output(q.options.format), q.options.format, output.NoHeader(q.options.noHeader), app.Templates(a))
		return recordSink{records: records}, err
	}
	headers := columns.Headers(columnsOf(q, q.kinds[0]))
	if a.Redraws() && !q.options.noTrunc {
		screen := func() output.Screen {
			screen, _ := a.Screen(false)
			return screen
		}
		return liveSink{output.NewLive(a.Out, headers, !q.options.noHeader, screen), headers}, nil
	}
	screen := func() (output.Screen, bool) { return a.Screen(q.options.noTrunc) }
	return tableSink{
		stream: output.NewStream(a.Out, headers, screen), headers: headers, header: !q.options.noHeader,
		printed: map[string][]string{},
	}, nil
}

// lines implements the methods of sinks that print lines instead of redrawing them.
type lines struct{}

func (lines) draw(bool) error { return nil }

func (lines) beside(write func()) { write() }

type recordSink struct {
	lines
	records *output.Records
}

func (s recordSink) begin(entries []entry) error {
	for _, e := range entries {
		if err := s.add(e, true, false); err != nil {
			return err
		}
	}
	return nil
}

func (s recordSink) add(e entry, _, deleted bool) error {
	return s.records.Print(&unstructured.Unstructured{Object: e.object}, deleted)
}

// tableSink prints a row for each visible change.
type tableSink struct {
	lines
	stream  *output.Stream
	headers []string
	header  bool
	// printed has the last row of each object.
	printed map[string][]string
}

func (s tableSink) begin(entries []entry) error {
	for _, e := range entries {
		s.printed[rowKey(s.headers, e.row)] = e.row
	}
	return s.stream.Begin(rowsOf(entries), s.header)
}

func (s tableSink) add(e entry, _, deleted bool) error {
	key, row := rowKey(s.headers, e.row), e.row
	if deleted {
		row = deletedRow(s.headers, row)
	}
	if slices.Equal(s.printed[key], row) {
		return nil
	}
	s.printed[key] = row
	return s.stream.Add(row)
}

// liveSink redraws a table on the screen.
type liveSink struct {
	table   *output.Live
	headers []string
}

func (s liveSink) begin(entries []entry) error {
	for _, e := range entries {
		s.table.Put(rowKey(s.headers, e.row), e.row, false)
	}
	return s.table.Draw()
}

func (s liveSink) add(e entry, kept, deleted bool) error {
	row := e.row
	if deleted {
		row = deletedRow(s.headers, row)
	}
	s.table.Put(rowKey(s.headers, row), row, !kept)
	return nil
}

func (s liveSink) draw(resized bool) error {
	if resized {
		return s.table.Redraw()
	}
	return s.table.Draw()
}

func (s liveSink) beside(write func()) {
	// The next draw reports the same error.
	_ = s.table.Erase()
	write()
}

// deletedRow returns the row of a deleted object. READY is False, because scripts expect True,
// False or Unknown in this column.
func deletedRow(headers, row []string) []string {
	row = slices.Clone(row)
	row[slices.Index(headers, "READY")] = "False"
	row[slices.Index(headers, "MESSAGE")] = "deleted"
	return row
}

// rowKey returns the key of a row of the table.
func rowKey(headers, row []string) string {
	var key []string
	for i, header := range headers {
		if header == "NAMESPACE" || header == "KIND" || header == "NAME" {
			key = append(key, row[i])
		}
	}
	return strings.Join(key, "/")
}
