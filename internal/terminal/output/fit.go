package output

import (
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/terminal/fit"
)

// step reduces the width of a column.
type step struct {
	// header selects the column, or is "" for all columns without a separate step.
	header string
	// least is the width to which cells are truncated.
	least int
	// form replaces cells with a shorter form.
	form int
	// drop removes the column, unless a cell is "True".
	drop bool
	// empty removes the column if all cells are empty.
	empty bool
}

const (
	gap = "  "
	// goodMessage is the width to which the last column is reduced first, and leastMessage its minimum width.
	goodMessage, leastMessage = 24, 7
	// goodName and leastName are the widths to which names are reduced, in two steps.
	goodName, leastName = 40, 20
	// leastCell is the minimum width of other cells.
	leastCell = 10
	// foldedMessage is the minimum width of the last column for wrapped text, and
	// below is the indent of the text on a separate line.
	foldedMessage, below = 40, 4
)

// steps lists the reductions in the order in which they are applied until a table fits, starting
// with the least important columns. Names are truncated before messages are shortened to their
// minimum width. Readiness and reasons are never reduced.
var steps = []step{
	{header: "SUSPEND REASON", empty: true},
	{header: "LAST HANDLED", empty: true},
	{header: "MESSAGE", least: goodMessage},
	{header: "SUSPENDED", drop: true},
	{header: "SUSPENDED", form: 1},
	{header: "LAST HANDLED", drop: true},
	{header: "AGE", drop: true},
	{header: "SUSPEND REASON", least: 14},
	{header: ""},
	{header: "REVISION", form: 1},
	{header: "NAME", least: goodName},
	{header: "OBJECT", least: goodName},
	{header: "NAME", least: leastName},
	{header: "OBJECT", least: leastName},
	{header: "MESSAGE", least: leastMessage},
	{header: "REVISION", form: 2},
}

// kept lists the columns to which the step without a header does not apply: identifiers and short columns.
var kept = []string{"CLUSTER", "NAMESPACE", "KIND", "NAME", "OBJECT", "WEBHOOK PATH", "READY", "REASON", "REVISION", "SUSPENDED", "MESSAGE"}

// forms is the number of forms of a cell. The first form is the full cell.
const forms = 3

var (
	algorithm = lazy.Regexp(`(^|@)(sha1|sha256|sha384|sha512|blake3):`)
	release   = lazy.Regexp(`^v?[0-9]`)
)

// shortened returns the given form of a cell. For a revision, the first shorter form omits the
// algorithm, and the next also omits the less specific part.
func shortened(header, cell string, form int) string {
	if header != "REVISION" || form == 0 {
		return cell
	}
	cell = algorithm().ReplaceAllString(cell, "$1")
	name, digest, ok := strings.Cut(cell, "@")
	switch {
	case form == 1 || !ok:
		return cell
	case release().MatchString(name):
		return name
	default:
		return digest
	}
}

// headed returns the given form of a column header.
func headed(header string, form int) string {
	if header == "SUSPENDED" && form > 0 {
		return "SUSP"
	}
	return header
}

// measure holds the width of a column for each form.
type measure struct {
	widths [forms]int
	// says is set if a cell is "True", and filled if a cell is not empty.
	says, filled bool
}

func (m *measure) take(header, cell string) {
	for form := range forms {
		m.widths[form] = max(m.widths[form], fit.Width(shortened(header, cell, form)))
	}
	m.says, m.filled = m.says || cell == "True", m.filled || cell != ""
}

func (m *measure) takeHeader(header string) {
	for form := range forms {
		m.widths[form] = max(m.widths[form], fit.Width(headed(header, form)))
	}
}

func measured(headers []string, rows [][]string, withHeaders bool) []measure {
	measures := make([]measure, len(headers))
	for i, header := range headers {
		if withHeaders {
			measures[i].takeHeader(header)
		}
		for _, row := range rows {
			measures[i].take(header, row[i])
		}
	}
	return measures
}

// layout is the layout of a column.
type layout struct {
	width, form int
	dropped     bool
	// under reports whether the last column is printed on a separate line after the row.
	under bool
}

// fit reduces columns to the width of the screen. If that is impossible, lines wrap, and the message column is wider.
func (s Screen) fit(headers []string, measures []measure) []layout {
	columns := make([]layout, len(headers))
	for i, m := range measures {
		columns[i].width = m.widths[0]
	}
	if s.Width == 0 || len(columns) == 0 {
		return columns
	}
	last := &columns[len(columns)-1]
	if s.Fold && s.over(columns) > max(0, last.width-foldedMessage) {
		last.under, last.dropped = true, true
	}
	for _, step := range steps {
		s.take(step, headers, measures, columns)
	}
	if !last.under && s.over(columns) > 0 {
		last.width = min(measures[len(columns)-1].widths[0], goodMessage)
	}
	return columns
}

// over returns the number of characters by which the columns exceed the width.
func (s Screen) over(columns []layout) int {
	total := -len(gap)
	for _, c := range columns {
		if !c.dropped {
			total += c.width + len(gap)
		}
	}
	return total - s.Width
}

func (s Screen) take(t step, headers []string, measures []measure, columns []layout) {
	if t.header == "" {
		s.narrow(headers, columns)
		return
	}
	i := slices.Index(headers, t.header)
	if t.header == "MESSAGE" {
		i = len(headers) - 1 // the last column contains text, whatever its header
	}
	if i < 0 || columns[i].dropped {
		return
	}
	c, over := &columns[i], s.over(columns)
	switch {
	case over <= 0:
	case t.empty:
		c.dropped = !measures[i].filled
	case t.drop:
		c.dropped = !measures[i].says
	case t.form > 0:
		c.form, c.width = t.form, min(c.width, measures[i].widths[t.form])
	default:
		c.width = max(min(c.width, t.least), c.width-over)
	}
}

// narrow reduces the widest of the columns without a separate step.
func (s Screen) narrow(headers []string, columns []layout) {
	for over := s.over(columns); over > 0; over-- {
		widest := -1
		for i, c := range columns[:len(columns)-1] {
			if !c.dropped && c.width > max(leastCell, fit.Width(headers[i])) && !slices.Contains(kept, headers[i]) && (widest < 0 || c.width > columns[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		columns[widest].width--
	}
}
