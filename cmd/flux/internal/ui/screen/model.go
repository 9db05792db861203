package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/child"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/paint"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/rows"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/sites"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/live"
)

const (
	smallestWidth, smallestHeight = 60, 16
	// lostGrace is the time after which a lost connection is shown: servers close watches regularly.
	lostGrace = 3 * time.Second
)

// model is the state of the dashboard.
type model struct {
	ctx    context.Context //nolint:containedctx // bubbletea has no other way to pass it to commands
	app    *app.App
	sites  sites.List
	run    *child.Runner
	styles paint.Styles

	width, height int
	now           time.Time
	// parts holds the states of the sites, and snapshot the state of all.
	parts    []live.Snapshot
	snapshot live.Snapshot
	loaded   bool
	list     rows.List
	page     *page
	events   *page
	prompt   *prompt
	help     bool
	// status is the message in the last line.
	status string
	action *activity
	// awaited holds the objects for which a notification is sent when they are ready.
	awaited map[live.Key]bool
}

func newModel(a *app.App, all sites.List, r *child.Runner) *model {
	return &model{
		app: a, sites: all, run: r, styles: paint.New(), now: a.Now(),
		parts: make([]live.Snapshot, len(all)), awaited: map[live.Key]bool{},
	}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.list.Height = rowsShown(m)
		for _, p := range []*page{m.page, m.events} {
			if p != nil {
				p.update(m)
			}
		}
	case snapshotMsg:
		return m, m.take(msg)
	case tickMsg:
		m.now = m.app.Now()
		return m, tick()
	case child.Output:
		m.received(msg.Run, func(t *child.Transcript) { t.Add(msg.Text) })
	case child.End:
		m.received(msg.Run, func(t *child.Transcript) { t.End() })
		m.ended(msg)
	case resumedMsg:
		return m, resumed(m, msg)
	case restMsg:
		if m.events != nil && int(msg) == m.list.Moves {
			m.openEvents()
		}
	case tea.MouseWheelMsg:
		return m, m.wheel(msg)
	case tea.MouseClickMsg:
		return m, m.click(msg)
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		if m.prompt != nil && len(m.prompt.inputs) > 0 {
			return m, m.prompt.typed(m, msg)
		}
	}
	return m, nil
}

// resumedMsg is sent when the dashboard continues after a suspension.
type resumedMsg struct{ err error }

// resumed closes the dashboard if the terminal is lost.
func resumed(m *model, msg resumedMsg) tea.Cmd {
	switch {
	case errors.Is(msg.err, child.ErrNotStopped):
		m.status = msg.err.Error()
	case msg.err != nil:
		return tea.Quit
	}
	return nil
}

// take shows a new state of a cluster, and notifies the user of objects that have become ready.
func (m *model) take(msg snapshotMsg) tea.Cmd {
	m.parts[msg.site] = msg.state
	s := live.Merge(slices.Clone(m.parts))
	m.snapshot, m.loaded, m.now = s, m.loaded || !s.Loading(), msg.state.At
	m.list.Show(s)
	var announced []string
	for _, row := range s.Rows {
		if m.awaited[row.Key] && row.State == live.Ready {
			delete(m.awaited, row.Key)
			announced = append(announced, printable.Line(row.Key.String())+" is ready")
		}
	}
	if len(announced) == 0 {
		return nil
	}
	m.status = strings.Join(announced, ", ")
	// Ring the bell, and send a notification to terminals that support OSC 9.
	return tea.Raw("\a\x1b]9;" + m.status + "\a")
}

// received passes output to the page or action that shows it.
func (m *model) received(run int, add func(*child.Transcript)) {
	for _, p := range []*page{m.page, m.events} {
		if p != nil && p.run == run {
			add(&p.text)
			p.update(m)
		}
	}
	if m.action != nil && m.action.run == run {
		add(&m.action.text)
		m.status = m.action.text.Last()
	}
}

// ended shows the result of a command that has ended.
func (m *model) ended(msg child.End) {
	for _, p := range []*page{m.page, m.events} {
		if p != nil && p.run == msg.Run {
			p.done = true
			if msg.Err != nil {
				p.failed = child.Cleaned("✗ running flux: " + msg.Err.Error())
			}
			p.update(m)
		}
	}
	if m.action != nil && m.action.run == msg.Run {
		m.actionEnded(msg)
	}
}

// press handles a key.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	switch name := key.String(); {
	case name == "ctrl+z":
		return tea.Exec(&child.Suspension{}, func(err error) tea.Msg { return resumedMsg{err} })
	case name == "ctrl+c":
		return tea.Quit
	case m.prompt != nil:
		return m.prompt.press(m, key)
	case m.help:
		m.help = false
		return nil
	case name == "?":
		m.help = true
		return nil
	case name == ":":
		return m.ask(jumpPrompt(m))
	case m.page != nil:
		return m.pressInPage(key)
	default:
		return m.pressInList(key)
	}
}

// pressInList handles a key of the list.
func (m *model) pressInList(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if m.list.Move(name) {
		return m.rested()
	}
	switch name {
	case "q":
		return tea.Quit
	case "/":
		return m.ask(filterPrompt(m))
	case "esc":
		if len(m.list.Marks) == 0 {
			m.list.Filter = live.Filter{}
		}
		clear(m.list.Marks)
		m.list.Show(m.snapshot)
		return nil
	case "e":
		if m.events == nil {
			m.openEvents()
			return nil
		}
		m.events.close()
		m.events = nil
		return nil
	}
	row, ok := m.list.Selected()
	if !ok {
		return nil
	}
	switch name {
	case "enter":
		m.open(row, 0)
	case "space":
		m.list.Mark(row.Key)
		m.list.Move("down")
	default:
		return m.pressOnObject(name, row)
	}
	return nil
}

// pressOnObject handles a key that the list and the pages have in common.
func (m *model) pressOnObject(name string, row live.Row) tea.Cmd {
	switch name {
	case "p":
		m.openOwner(row)
	case "b", "backspace":
		if !m.list.Back() {
			m.status = "no earlier object"
		} else if m.page != nil {
			m.reopen()
		}
	case "y":
		m.status = "copied " + printable.Line(row.ID.String())
		return tea.SetClipboard(row.ID.String())
	case "n":
		m.awaited[row.Key] = true
		m.status = "notifying when " + printable.Line(row.Key.String()) + " is ready"
	case "o":
		m.openOutput()
	default:
		if !openPage(m, name, row) {
			return m.act(name)
		}
	}
	return nil
}

// openOwner selects the object that applies an object.
func (m *model) openOwner(row live.Row) {
	owner, ok := controllers.Manager(row.Object)
	switch {
	case !ok:
		m.status = printable.Line(row.Key.String()) + " is not applied by a Flux resource"
	case !m.list.Jump(m.snapshot, live.Key{Cluster: row.Cluster, ID: owner}):
		m.status = printable.Line(owner.String()) + " is not in the list"
	case m.page != nil:
		m.reopen()
	}
}

// ask shows a prompt.
func (m *model) ask(p *prompt) tea.Cmd {
	m.prompt, m.status = p, ""
	return p.focus(0)
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.MouseMode, v.WindowTitle = true, tea.MouseModeCellMotion, "flux "+m.sites.Title()
	if m.width == 0 {
		return v
	}
	if m.width < smallestWidth || m.height < smallestHeight {
		v.Content = fmt.Sprintf("flux ui requires a terminal of at least %d columns and %d lines", smallestWidth, smallestHeight)
		return v
	}
	lines := header(m)
	switch {
	case m.help:
		lines = append(lines, helpLines(m)...)
	case m.page != nil:
		lines = append(lines, m.page.view(m)...)
	default:
		lines = append(lines, listView(m)...)
	}
	last := bottom(m)
	lines = lines[:min(len(lines), m.height-len(last))]
	for len(lines) < m.height-len(last) {
		lines = append(lines, "")
	}
	v.Content = strings.Join(append(lines, last...), "\n")
	return v
}

// bottom returns the prompt, or the status and the most important keys.
func bottom(m *model) []string {
	if m.prompt != nil {
		return m.prompt.view(m)
	}
	if m.status != "" {
		return []string{paint.Filled(m.styles.Cyan.Render(printable.Line(m.status)), m.width)}
	}
	keys := "enter why  / filter  : jump  space mark  ? help  q quit"
	if !m.sites.ReadOnly() {
		keys = "enter why  / filter  : jump  space mark  r reconcile  s suspend  u resume  ? help  q quit"
	}
	if m.page != nil {
		keys = cmp.Or(m.page.keys, pageKeys)
	}
	return []string{m.styles.Faint.Render(paint.Filled(keys, m.width))}
}
