package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/child"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/paint"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/live"
)

// pageKeys are the most important keys of a page.
const pageKeys = "tab next page  R reload  W wrap  p owner  b back  esc list  ? help"

// page shows the output of a command about an object.
type page struct {
	row    live.Row
	at     int
	title  string
	run    int
	cancel context.CancelFunc
	text   child.Transcript
	port   viewport.Model
	done   bool
	failed string
	// unfolded also shows healthy parts.
	unfolded bool
	// cuts truncates long lines instead of wrapping them.
	cuts bool
	// keys replaces the line with the most important keys.
	keys string
	// bottom keeps the end of the output visible.
	bottom bool
}

func newPage(m *model, row live.Row) *page {
	p := &page{row: row, at: -1, port: viewport.New(), cancel: func() {}}
	p.resize(m)
	return p
}

// load runs the command of the page.
func (p *page) load(m *model, args []string) {
	p.close()
	p.text, p.done, p.failed = child.Transcript{}, false, ""
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(m.ctx)
	p.run = m.run.Start(ctx, m.sites.Args(p.row.Cluster, args))
	p.update(m)
}

func (p *page) close() { p.cancel() }

func (p *page) resize(m *model) {
	p.port.SetWidth(m.width)
	height := m.height - len(header(m)) - 2
	if p == m.events {
		height = eventLines - 1
	}
	p.port.SetHeight(max(1, height))
}

// update shows the output that was received.
func (p *page) update(m *model) {
	p.resize(m)
	lines := p.text.Lines
	switch {
	case p.failed != "":
		lines = append(slices.Clip(lines), p.failed)
	case len(lines) == 0 && p.done:
		lines = []string{"no output"}
	case len(lines) == 0:
		lines = []string{m.styles.Faint.Render("loading …")}
	}
	if !p.cuts {
		lines = wrapped(lines, p.port.Width())
	}
	stay := p.bottom && p.port.AtBottom()
	p.port.SetContentLines(lines)
	if stay {
		p.port.GotoBottom()
	}
}

// wrapped wraps lines at a width. The continuation of a line has its indentation.
func wrapped(lines []string, width int) []string {
	var all []string
	for _, line := range lines {
		text := strings.TrimLeft(line, " ")
		indent := line[:min(len(line)-len(text), width/2)]
		for part := range strings.SplitSeq(ansi.Wrap(text, width-len(indent), ""), "\n") {
			all = append(all, indent+part)
		}
	}
	return all
}

func (p *page) scroll(key string, n int) bool {
	switch key {
	case "up", "k":
		p.port.ScrollUp(n)
	case "down", "j":
		p.port.ScrollDown(n)
	case "left":
		p.port.ScrollLeft(8)
	case "right":
		p.port.ScrollRight(8)
	case "pgup", "ctrl+b":
		p.port.PageUp()
	case "pgdown", "ctrl+f", "space":
		p.port.PageDown()
	case "home", "g":
		p.port.GotoTop()
	case "end", "G":
		p.port.GotoBottom()
	default:
		return false
	}
	return true
}

// view returns the tabs and the output.
func (p *page) view(m *model) []string {
	title := m.styles.Strong.Render(p.title)
	if p.at >= 0 {
		var tabs []string
		for i, kind := range verbs.Pages() {
			switch {
			case !kind.Has(*p.row.Kind):
			case i == p.at:
				tabs = append(tabs, m.styles.Selected.Render(" "+kind.Name+" "))
			default:
				tabs = append(tabs, m.styles.Faint.Render(" "+kind.Name+" "))
			}
		}
		state := m.styles.Of(p.row.State).Render(paint.Mark(p.row.State) + " " + printable.Line(p.row.Key.String()))
		title = paint.Sides(state, strings.Join(tabs, ""), m.width)
	}
	return append([]string{paint.Filled(title, m.width)}, strings.Split(p.port.View(), "\n")...)
}

// open shows a page about an object, or the next one that its kind has.
func (m *model) open(row live.Row, at int) {
	if row.Object == nil && at > 0 {
		m.status = printable.Line(row.Key.String()) + " is not in the list: only its why page is available"
		return
	}
	kinds := verbs.Pages()
	if !kinds[at].Has(*row.Kind) {
		m.status = fmt.Sprintf("%s has no %s page", row.ID.Kind, kinds[at].Name)
		return
	}
	p := newPage(m, row)
	if m.page != nil {
		m.page.close()
		p.unfolded, p.cuts = m.page.unfolded, m.page.cuts
	}
	p.at, p.bottom = at, slices.Contains([]string{"logs", "pods"}, kinds[at].Name)
	m.page, m.status = p, ""
	if kinds[at].Name == "history" && verbs.ComparesRevisions(*row.Kind) {
		p.keys = "c compare revisions  " + pageKeys
	}
	p.load(m, kinds[at].Args(row, !p.unfolded))
}

// openPage shows the page of a key, and reports whether there is one.
func openPage(m *model, key string, row live.Row) bool {
	at := slices.IndexFunc(verbs.Pages(), func(p verbs.Page) bool { return p.Key == key })
	if at >= 0 {
		m.open(row, at)
	}
	return at >= 0
}

// reopen shows the page about the selected object.
func (m *model) reopen() {
	row, ok := m.list.Selected()
	if !ok {
		return
	}
	at := max(0, m.page.at)
	if !verbs.Pages()[at].Has(*row.Kind) {
		at = 0
	}
	m.open(row, at)
}

// pressInPage handles a key of a page.
func (m *model) pressInPage(key tea.KeyPressMsg) tea.Cmd {
	name, p := key.String(), m.page
	if p.scroll(name, 1) {
		return nil
	}
	step := 0
	switch name {
	case "esc", "q":
		p.close()
		m.page, m.status = nil, ""
		return nil
	case "tab":
		step = 1
	case "shift+tab":
		step = -1
	case "R":
		m.reload()
		return nil
	case "W":
		p.cuts = !p.cuts
		p.update(m)
		return nil
	case "c":
		if p.at >= 0 && verbs.Pages()[p.at].Name == "history" {
			return compareRevisions(m, p.row)
		}
	case "f":
		p.unfolded = !p.unfolded
		m.reload()
		return nil
	}
	if p.at < 0 { // the output of an action may be about several objects
		openPage(m, name, p.row)
		return nil
	}
	if step == 0 {
		return m.pressOnObject(name, p.row)
	}
	n := len(verbs.Pages())
	for at := (p.at + step + n) % n; at != p.at; at = (at + step + n) % n {
		if verbs.Pages()[at].Has(*p.row.Kind) {
			m.open(p.row, at)
			break
		}
	}
	return nil
}

func (m *model) reload() {
	if p := m.page; p.at >= 0 {
		p.load(m, verbs.Pages()[p.at].Args(p.row, !p.unfolded))
	}
}

// openEvents shows the events of the selected object below the list.
func (m *model) openEvents() {
	row, ok := m.list.Selected()
	if !ok || row.Object == nil {
		return
	}
	if m.events != nil {
		m.events.close()
	}
	m.events = newPage(m, row)
	m.events.title, m.events.bottom = "Events of "+printable.Line(row.Key.String()), true
	m.events.cuts = true
	m.events.load(m, []string{"events", "--for=" + row.ID.String(), "--no-header"})
	m.events.port.GotoBottom()
}

// openOutput shows the output of the last action.
func (m *model) openOutput() {
	if m.action == nil {
		m.status = "no action yet"
		return
	}
	row := m.action.rows[0]
	if m.page != nil {
		m.page.close()
	}
	p := newPage(m, row)
	p.title, p.run, p.text, p.done, p.keys = m.action.title, m.action.run, m.action.text, m.action.done, "esc list"
	m.page = p
	p.update(m)
}
