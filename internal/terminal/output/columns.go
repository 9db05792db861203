package output

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// CustomColumns prints the columns of -o custom-columns from rows, which require less memory than
// the objects. All rows are required to compute the padding.
type CustomColumns struct {
	mu      sync.Mutex // an expression is not safe for concurrent use
	printer *columnPrinter
}

// NewCustomColumns returns the columns of an -o custom-columns format, or nil for other formats.
func NewCustomColumns(format string, given ...Option) (*CustomColumns, error) {
	spec, ok := strings.CutPrefix(format, "custom-columns=")
	if !ok {
		return nil, nil
	}
	p, err := newColumnPrinter(spec, optionsOf(given).noHeader)
	return &CustomColumns{printer: p}, err
}

// Row returns the cells of an object.
func (c *CustomColumns) Row(o map[string]any) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.printer.row(o)
}

// Print prints rows, with the headers before the first one.
func (c *CustomColumns) Print(w io.Writer, rows [][]string) error { return c.printer.write(w, rows) }

// columnPrinter prints custom-columns=HEADER:.path,… like kubectl: cells are padded with spaces,
// except the last, and missing values are <none>.
type columnPrinter struct {
	headers []string
	paths   []*jsonpath.JSONPath
	// noHeader omits the headers. begun is set once a row has been printed.
	noHeader, begun bool
	// widths holds the current column widths. Later rows do not reduce them.
	widths []int
}

// leastColumn is the minimum width of a column including padding, and columnPadding the padding
// between columns.
const leastColumn, columnPadding = 6, 3

func newColumnPrinter(spec string, noHeader bool) (*columnPrinter, error) {
	p := &columnPrinter{noHeader: noHeader}
	for _, column := range strings.Split(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, fmt.Errorf("invalid custom column %q: must be HEADER:.path", column)
		}
		j := jsonpath.New(header).AllowMissingKeys(true)
		if err := j.Parse(relaxed(path)); err != nil {
			return nil, fmt.Errorf("invalid custom column %q: %w", column, err)
		}
		p.headers, p.paths = append(p.headers, header), append(p.paths, j)
	}
	p.widths = make([]int, len(p.headers))
	return p, nil
}

// relaxed adds omitted braces and an omitted leading dot to a JSONPath expression.
func relaxed(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	if !strings.HasPrefix(path, ".") {
		path = "." + path
	}
	return "{" + path + "}"
}

// PrintObj prints a row for each object, after the headers.
func (p *columnPrinter) PrintObj(obj runtime.Object, w io.Writer) error {
	var rows [][]string
	for _, o := range contents(obj) {
		rows = append(rows, p.row(o))
	}
	return p.write(w, rows)
}

// write prints rows, with the headers before the first one.
func (p *columnPrinter) write(w io.Writer, rows [][]string) error {
	if !p.begun && !p.noHeader {
		rows = append([][]string{p.headers}, rows...)
	}
	p.begun = true
	for _, row := range rows {
		for i, cell := range row {
			p.widths[i] = max(p.widths[i], leastColumn, utf8.RuneCountInString(cell)+columnPadding)
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			b.WriteString(cell + strings.Repeat(" ", p.widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString(row[len(row)-1] + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *columnPrinter) row(o map[string]any) []string {
	row := make([]string, len(p.paths))
	for i, path := range p.paths {
		row[i] = cell(path, o)
	}
	return row
}

func contents(obj runtime.Object) []map[string]any {
	switch o := obj.(type) {
	case *unstructured.UnstructuredList:
		var all []map[string]any
		for _, item := range o.Items {
			all = append(all, item.Object)
		}
		return all
	case *unstructured.Unstructured:
		return []map[string]any{o.Object}
	default:
		return nil
	}
}

// cell returns the values at a path in an object on one line, separated by commas.
func cell(path *jsonpath.JSONPath, o map[string]any) string {
	results, err := path.FindResults(o)
	if err != nil {
		return "<none>"
	}
	var values []string
	for _, result := range results {
		for _, value := range result {
			if value.IsValid() && value.Interface() != nil {
				values = append(values, fmt.Sprint(value.Interface()))
			}
		}
	}
	if len(values) == 0 {
		return "<none>"
	}
	return printable.Line(strings.Join(values, ","))
}
