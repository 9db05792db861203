package screen

import (
	"cmp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/child"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/paint"
	"github.com/fluxkit/flux/pkg/live"
)

const (
	// detailLines is the height of the details of the selected object, eventLines the height of its events.
	detailLines, eventLines = 4, 8
	restDelay               = 300 * time.Millisecond
	wheelLines              = 3
)

// restMsg is sent when the cursor has not moved for a while since the given number of moves.
type restMsg int

// rowsShown returns the number of rows that fit on the screen.
func rowsShown(m *model) int {
	n := m.height - len(header(m)) - 1 - detailLines - 1
	if m.events != nil {
		n -= eventLines
	}
	return max(1, n)
}

// listView returns the table, and the message and the fix of the selected object.
func listView(m *model) []string {
	l := &m.list
	l.Height = rowsShown(m)
	l.Scroll()
	columns := paint.ColumnsOf(m.width, m.sites.Width())
	lines := []string{m.styles.Strong.Render(columns.Line("  RESOURCE", "CLUSTER", "AGE", "REVISION", "MESSAGE"))}
	for i := l.Top; i < min(len(l.Rows), l.Top+l.Height); i++ {
		lines = append(lines, rowView(m, columns, l.Rows[i], i == l.Cursor))
	}
	if len(l.Rows) == 0 && m.loaded {
		lines = append(lines, "", "  no resources")
	}
	if m.prompt != nil {
		return lines
	}
	for len(lines) < l.Height+1 {
		lines = append(lines, "")
	}
	lines = append(lines, details(m)...)
	if m.events != nil {
		lines = append(lines, m.events.view(m)...)
	}
	return lines
}

func rowView(m *model, c paint.Columns, row live.Row, selected bool) string {
	prefix := paint.Mark(row.State) + " "
	if m.list.Marks[row.Key] {
		prefix = "● "
	}
	if row.Root != row.ID && row.Root.Name != "" {
		prefix = "└ " + prefix
	}
	name := row.ID.String()
	if word := cmp.Or(row.Kind.Short, row.Kind.Word); word != "" && c.Revision == 0 {
		name = strings.Replace(name, row.ID.Kind, word, 1)
	}
	line := c.Line(prefix+name, row.Cluster, overview.Age(m.snapshot, row), row.Revision, overview.Message(row))
	switch {
	case selected:
		return m.styles.Selected.Render(line)
	case row.State == live.Ready:
		return line
	}
	return m.styles.Of(row.State).Render(line)
}

// details returns the message and the fixes of the selected object.
func details(m *model) []string {
	lines := []string{m.styles.Faint.Render(strings.Repeat("─", m.width))}
	row, ok := m.list.Selected()
	if !ok {
		return append(lines, "", "", "")
	}
	text := string(row.State) + ": " + overview.Message(row)
	if row.State == live.Waiting {
		text += ": " + row.Message
	}
	message := append(paint.Wrapped(child.Cleaned(text), m.width, 2), "")[:2]
	fix := ""
	if len(row.Fixes) > 0 {
		fix = "Fix: " + child.Cleaned(row.Fixes[0])
	}
	return append(append(lines, message...), m.styles.Strong.Render(paint.Filled(fix, m.width)))
}

// rested schedules the update of the events after the cursor has stopped.
func (m *model) rested() tea.Cmd {
	m.status = ""
	if m.events == nil {
		return nil
	}
	moves := m.list.Moves
	return tea.Tick(restDelay, func(time.Time) tea.Msg { return restMsg(moves) })
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
		m.list.Move(key)
	}
	return m.rested()
}

// click selects a row.
func (m *model) click(msg tea.MouseClickMsg) tea.Cmd {
	if m.prompt != nil || m.page != nil || m.help || msg.Button != tea.MouseLeft {
		return nil
	}
	line := msg.Y - len(header(m)) - 1
	i := m.list.Top + line
	if line < 0 || line >= m.list.Height || i >= len(m.list.Rows) {
		return nil
	}
	m.list.Moves++
	m.list.Cursor = i
	return m.rested()
}
