package output

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// step is one way in which a column gives way to a narrow screen.
type step struct {
	// header is the column, "" for every column that no other step names.
	header string
	// least cuts cells down to that width, as far as it takes.
	least int
	// form shows cells in that shorter form.
	form int
	// drop leaves the column out, unless a cell is "True".
	drop bool
	// empty leaves the column out if all cells are empty.
	empty bool
}

const (
	gap = "  "
	// goodMessage is the width down to which the last column gives way before
	// any other, and leastMessage the one after all others.
	goodMessage, leastMessage = 24, 7
	// leastCell is the width down to which other cells are cut.
	leastCell = 10
	// foldedMessage is how wide the last column has to be for text that is
	// folded in it, and below how far it is indented on a line of its own.
	foldedMessage, below = 40, 4
)

// steps are taken in their order until a table fits: what is least important
// gives way first. What names an object and says how it is stays legible.
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
	{header: "MESSAGE", least: leastMessage},
	{header: "REVISION", form: 2},
}

// kept are the columns that no step without a name is about: what is copied
// and pasted, and what is short anyway.
var kept = []string{"NAMESPACE", "KIND", "NAME", "OBJECT", "WEBHOOK PATH", "READY", "REVISION", "SUSPENDED", "MESSAGE"}

// whole are the columns whose cells are copied and pasted and so never cut.
var whole = []string{"NAMESPACE", "KIND", "NAME", "OBJECT", "WEBHOOK PATH"}

// forms is the number of forms in which a cell can be shown, the first one being as it is.
const forms = 3

var (
	algorithm = regexp.MustCompile(`(^|@)(sha1|sha256|sha384|sha512|blake3):`)
	release   = regexp.MustCompile(`^v?[0-9]`)
)

// shortened is a cell of a column in a form: of a revision, the algorithm goes
// first, and then what says least about the content.
func shortened(header, cell string, form int) string {
	if header != "REVISION" || form == 0 {
		return cell
	}
	cell = algorithm.ReplaceAllString(cell, "$1")
	name, digest, ok := strings.Cut(cell, "@")
	switch {
	case form == 1 || !ok:
		return cell
	case release.MatchString(name):
		return name
	default:
		return digest
	}
}

// headed is a column's header in a form.
func headed(header string, form int) string {
	if header == "SUSPENDED" && form > 0 {
		return "SUSP"
	}
	return header
}

// measure is how much room the cells of a column take in each form.
type measure struct {
	widths [forms]int
	// says is whether a cell is "True", and filled whether one is not empty.
	says, filled bool
}

func (m *measure) take(header, cell string) {
	for form := range forms {
		m.widths[form] = max(m.widths[form], utf8.RuneCountInString(shortened(header, cell, form)))
	}
	m.says, m.filled = m.says || cell == "True", m.filled || cell != ""
}

func (m *measure) takeHeader(header string) {
	for form := range forms {
		m.widths[form] = max(m.widths[form], utf8.RuneCountInString(headed(header, form)))
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

// layout is how a column is shown.
type layout struct {
	width, form int
	dropped     bool
	// under says that the last column is shown below the row.
	under bool
}

// fit makes the columns fit the screen as far as it can. Where they cannot,
// lines wrap, and may as well say more.
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

// over is by how much the columns are too wide.
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
		i = len(headers) - 1 // whatever it is called, the last column is text
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

// narrow takes from the widest of the columns that no step names.
func (s Screen) narrow(headers []string, columns []layout) {
	for over := s.over(columns); over > 0; over-- {
		widest := -1
		for i, c := range columns[:len(columns)-1] {
			if !c.dropped && c.width > max(leastCell, utf8.RuneCountInString(headers[i])) && !slices.Contains(kept, headers[i]) && (widest < 0 || c.width > columns[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		columns[widest].width--
	}
}
