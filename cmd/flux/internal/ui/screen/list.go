package screen

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/live"
)

const (
	// detailLines is the height of the message and the fix of the selected object, eventLines that of its events.
	detailLines, eventLines = 4, 8
	// revisionWidth is the width of the terminal from which the list shows revisions.
	revisionWidth = 110
	restDelay     = 300 * time.Millisecond
	wheelLines    = 3
)

// restMsg is sent when the cursor has rested since the given number of moves.
type restMsg int

// list is the list of objects with the cursor.
type list struct {
	rows        []live.Row
	cursor, top int
	height      int
	filter      live.Filter
	marks       map[controllers.ID]bool
	earlier     []controllers.ID
	moves       int
}

// show sets the rows. The cursor stays on its object, and marks of deleted objects are removed.
func (l *list) show(s live.Snapshot) {
	at, had := l.selected()
	l.rows = nil
	there := make(map[controllers.ID]bool, len(l.marks))
	for _, row := range s.Rows {
		if l.marks[row.ID] {
			there[row.ID] = true
		}
		if l.filter.Matches(row, s.At) {
			l.rows = append(l.rows, row)
		}
	}
	l.marks = there
	if i := l.index(at.ID); had && i >= 0 && (l.cursor > 0 || l.moves > 0) {
		l.cursor = i
	}
	l.scroll()
}

func (l *list) index(id controllers.ID) int {
	return slices.IndexFunc(l.rows, func(r live.Row) bool { return r.ID == id })
}

// selected returns the row of the cursor.
func (l *list) selected() (live.Row, bool) {
	if l.cursor < 0 || l.cursor >= len(l.rows) {
		return live.Row{}, false
	}
	return l.rows[l.cursor], true
}

// scroll keeps the cursor in the visible part.
func (l *list) scroll() {
	l.cursor = max(0, min(l.cursor, len(l.rows)-1))
	l.top = max(0, min(l.top, l.cursor, len(l.rows)-1), l.cursor-l.height+1)
}

// move moves the cursor, and reports whether the key does that.
func (l *list) move(key string) bool {
	steps := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -l.height, "ctrl+b": -l.height, "pgdown": l.height, "ctrl+f": l.height,
		"home": -len(l.rows), "g": -len(l.rows), "end": len(l.rows), "G": len(l.rows),
	}
	step, is := steps[key]
	if is {
		l.moves++
		l.cursor += step
		l.scroll()
	}
	return is
}

func (l *list) mark(id controllers.ID) {
	if l.marks[id] {
		delete(l.marks, id)
	} else {
		l.marks[id] = true
	}
}

// jump moves the cursor to an object, and clears a filter that hides it. It reports whether the object is in the list.
func (l *list) jump(s live.Snapshot, id controllers.ID) bool {
	if !slices.ContainsFunc(s.Rows, func(r live.Row) bool { return r.ID == id }) {
		return false
	}
	if row, ok := l.selected(); ok && row.ID != id {
		l.earlier = append(l.earlier, row.ID)
	}
	if l.index(id) < 0 {
		l.filter = live.Filter{}
		l.show(s)
	}
	l.moves++
	l.cursor = l.index(id)
	l.scroll()
	return true
}

// back moves the cursor to the object before the last jump.
func (l *list) back() bool {
	for len(l.earlier) > 0 {
		last := len(l.earlier) - 1
		i := l.index(l.earlier[last])
		l.earlier = l.earlier[:last]
		if i >= 0 {
			l.moves++
			l.cursor = i
			l.scroll()
			return true
		}
	}
	return false
}

// targets returns the marked rows, or else the selected one.
func (l *list) targets(s live.Snapshot) []live.Row {
	var rows []live.Row
	for _, row := range s.Rows {
		if l.marks[row.ID] {
			rows = append(rows, row)
		}
	}
	if row, ok := l.selected(); ok && len(rows) == 0 {
		rows = append(rows, row)
	}
	return rows
}

// rowsShown returns the number of rows that fit on the screen.
func (m *model) rowsShown() int {
	n := m.height - len(m.header()) - 1 - detailLines - 1
	if m.events != nil {
		n -= eventLines
	}
	return max(1, n)
}

// listView returns the table, and the message and the fix of the selected object.
func (m *model) listView() []string {
	l := &m.list
	l.height = m.rowsShown()
	l.scroll()
	columns := m.columns()
	lines := []string{m.styles.strong.Render(columns.line("  RESOURCE", "AGE", "REVISION", "MESSAGE"))}
	for i := l.top; i < min(len(l.rows), l.top+l.height); i++ {
		lines = append(lines, m.rowView(columns, l.rows[i], i == l.cursor))
	}
	if len(l.rows) == 0 && m.loaded {
		lines = append(lines, "", "  no resources")
	}
	if m.prompt != nil {
		return lines
	}
	for len(lines) < l.height+1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.details()...)
	if m.events != nil {
		lines = append(lines, m.events.view(m)...)
	}
	return lines
}

// columns are the widths of the columns of the list.
type columns struct{ name, age, revision, message int }

func (m *model) columns() columns {
	c := columns{age: 5}
	if m.width >= revisionWidth {
		c.revision = 24
	}
	c.name = min(60, (m.width-c.age-c.revision)*45/100)
	c.message = m.width - c.name - c.age - c.revision - 3
	if c.revision == 0 {
		c.message++
	}
	return c
}

func (c columns) line(name, age, revision, message string) string {
	parts := []string{cell(name, c.name), cell(age, c.age)}
	if c.revision > 0 {
		parts = append(parts, cell(revision, c.revision))
	}
	return strings.Join(append(parts, cell(message, c.message)), " ")
}

func (m *model) rowView(c columns, row live.Row, selected bool) string {
	prefix := mark(row.State) + " "
	if m.list.marks[row.ID] {
		prefix = "● "
	}
	if row.Root != row.ID && row.Root.Name != "" {
		prefix = "└ " + prefix
	}
	name := row.ID.String()
	if word := cmp.Or(row.Kind.Short, row.Kind.Word); word != "" && c.revision == 0 {
		name = strings.Replace(name, row.ID.Kind, word, 1)
	}
	line := c.line(prefix+name, overview.Age(m.snapshot, row), row.Revision, overview.Message(row))
	switch {
	case selected:
		return m.styles.selected.Render(line)
	case row.State == live.Ready:
		return line
	}
	return m.styles.of(row.State).Render(line)
}

// details returns the message and the fixes of the selected object.
func (m *model) details() []string {
	lines := []string{m.styles.faint.Render(strings.Repeat("─", m.width))}
	row, ok := m.list.selected()
	if !ok {
		return append(lines, "", "", "")
	}
	text := string(row.State) + ": " + overview.Message(row)
	if row.State == live.Waiting {
		if i := slices.IndexFunc(m.snapshot.Rows, func(r live.Row) bool { return r.ID == row.Root }); i >= 0 {
			root := m.snapshot.Rows[i]
			text += ": " + root.Message
			row.Fixes = root.Fixes
		}
	}
	message := wrapped(cleaned(text), m.width, 2)
	for len(message) < 2 {
		message = append(message, "")
	}
	fix := ""
	if len(row.Fixes) > 0 {
		fix = "Fix: " + cleaned(row.Fixes[0])
	}
	return append(append(lines, message...), m.styles.strong.Render(filled(fix, m.width)))
}

// rested schedules the update of the events of the selected object.
func (m *model) rested() tea.Cmd {
	m.status = ""
	if m.events == nil {
		return nil
	}
	moves := m.list.moves
	return tea.Tick(restDelay, func(time.Time) tea.Msg { return restMsg(moves) })
}

func (m *model) toggleEvents() {
	if m.events != nil {
		m.events.close()
		m.events = nil
		return
	}
	m.openEvents()
}

func (m *model) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	key := "down"
	if msg.Button == tea.MouseWheelUp {
		key = "up"
	}
	switch {
	case m.prompt != nil || m.help:
		return nil
	case m.page != nil:
		m.page.scroll(key, wheelLines)
		return nil
	}
	for range wheelLines {
		m.list.move(key)
	}
	return m.rested()
}

// click selects a row, or opens it if it is selected already.
func (m *model) click(msg tea.MouseClickMsg) tea.Cmd {
	if m.prompt != nil || m.page != nil || m.help || msg.Button != tea.MouseLeft {
		return nil
	}
	line := msg.Y - len(m.header()) - 1
	i := m.list.top + line
	if line < 0 || line >= m.list.height || i >= len(m.list.rows) {
		return nil
	}
	if i == m.list.cursor && m.list.moves > 0 {
		m.open(m.list.rows[i], 0)
		return nil
	}
	m.list.moves++
	m.list.cursor = i
	return m.rested()
}
