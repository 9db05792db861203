package screen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/paint"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/live"
)

// promptLines is the maximum number of lines of a prompt between its title and its keys.
const promptLines = 8

// prompt is a question at the bottom of the screen.
type prompt struct {
	title   string
	lines   []string
	options []verbs.Option
	// on holds the flags of the selected options.
	on map[string]bool
	// inputs are the text inputs, and at is the index of the focused one. Without inputs, y or enter confirms.
	inputs []*textinput.Model
	at     int
	// need is the text that the first input requires, or "" for any.
	need string
	// check returns an error if the inputs are invalid, and problem describes it. check may be nil.
	check   func(m *model) error
	problem string
	// loading is set until the lines are complete. The prompt cannot be confirmed until then.
	loading bool
	// change is called after each change of the input, and choose with the number of lines to move the selection. Both may be nil.
	change func(m *model, value string)
	choose func(step int)
	// mark marks the selected line, and may be nil. keys replaces the line with the keys.
	mark func()
	keys string
	// accept is nil if there is nothing to confirm.
	accept func(m *model) tea.Cmd
	// cancel is called if the prompt is closed without a confirmation, and end when it is closed. Both may be nil.
	cancel func(m *model)
	end    func()
}

// newInput returns a single-line input.
func newInput(label string) *textinput.Model {
	in := textinput.New()
	in.Prompt = label
	in.CharLimit = 200
	return &in
}

// focus lets the input at an index receive the keys.
func (p *prompt) focus(at int) tea.Cmd {
	if len(p.inputs) == 0 {
		return nil
	}
	p.inputs[p.at].Blur()
	p.at = (at + len(p.inputs)) % len(p.inputs)
	return p.inputs[p.at].Focus()
}

// value returns the text of an input.
func (p *prompt) value(i int) string { return strings.TrimSpace(p.inputs[i].Value()) }

// press handles a key. With inputs, options require alt, because other keys are text.
func (p *prompt) press(m *model, key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	option := slices.IndexFunc(p.options, func(o verbs.Option) bool {
		return name == "alt+"+o.Key || len(p.inputs) == 0 && name == o.Key
	})
	switch {
	case name == "esc", len(p.inputs) == 0 && (name == "n" || name == "q"), p.accept == nil:
		p.close(m)
		if p.cancel != nil {
			p.cancel(m)
		}
		return nil
	case option >= 0:
		flag := p.options[option].Flag
		p.on[flag] = !p.on[flag]
		return nil
	case name == "enter", len(p.inputs) == 0 && name == "y":
		return p.confirm(m)
	case p.choose != nil && (name == "up" || name == "down"):
		p.choose(map[string]int{"up": -1, "down": 1}[name])
		return nil
	case p.mark != nil && name == "space":
		p.mark()
		return nil
	case len(p.inputs) == 0:
		return nil
	case name == "tab" || name == "down":
		return p.focus(p.at + 1)
	case name == "shift+tab" || name == "up":
		return p.focus(p.at - 1)
	}
	return p.typed(m, key)
}

func (p *prompt) typed(m *model, msg tea.Msg) tea.Cmd {
	in, cmd := p.inputs[p.at].Update(msg)
	*p.inputs[p.at] = in
	p.problem = ""
	if p.change != nil {
		p.change(m, in.Value())
	}
	return cmd
}

func (p *prompt) confirm(m *model) tea.Cmd {
	if p.loading || p.need != "" && p.value(0) != p.need {
		return nil
	}
	if p.check != nil {
		if err := p.check(m); err != nil {
			p.problem = "✗ " + printable.Line(err.Error())
			var remedy *hint.Error
			if errors.As(err, &remedy) {
				p.problem += ": " + remedy.Hint
			}
			return nil
		}
	}
	p.close(m)
	return p.accept(m)
}

func (p *prompt) close(m *model) {
	m.prompt = nil
	if p.end != nil {
		p.end()
	}
}

// view returns the lines of the prompt.
func (p *prompt) view(m *model) []string {
	lines := []string{m.styles.Faint.Render(strings.Repeat("─", m.width))}
	if p.title != "" {
		lines = append(lines, m.styles.Strong.Render(paint.Filled(p.title, m.width)))
	}
	shown := p.lines
	if len(shown) > promptLines {
		shown = append(slices.Clip(shown[:promptLines-1]), fmt.Sprintf("  and %d more", len(p.lines)-promptLines+1))
	}
	for _, line := range shown {
		for _, part := range paint.Wrapped(line, m.width-2, 3) {
			lines = append(lines, "  "+part)
		}
	}
	if p.loading {
		lines = append(lines, m.styles.Faint.Render("  determining the consequences …"))
	}
	for _, o := range p.options {
		state, key := "off", o.Key
		if p.on[o.Flag] {
			state = m.styles.Strong.Render("on")
		}
		if len(p.inputs) > 0 {
			key = "alt+" + key
		}
		lines = append(lines, "  "+key+"  "+o.Flag+" ("+o.Text+"): "+state)
	}
	if p.problem != "" {
		lines = append(lines, m.styles.Red.Render(paint.Filled(p.problem, m.width)))
	}
	for _, in := range p.inputs {
		in.SetWidth(max(1, m.width-len(in.Prompt)-1))
		lines = append(lines, paint.Filled(in.View(), m.width))
	}
	if len(p.inputs) > 0 {
		return lines
	}
	keys := cmp.Or(p.keys, "y or enter confirms, n or esc cancels")
	if p.accept == nil {
		keys = "any key closes"
	}
	return append(lines, m.styles.Faint.Render(paint.Filled(keys, m.width)))
}

// filterPrompt changes the filter while it is typed.
func filterPrompt(m *model) *prompt {
	before := m.list.Filter
	fields := []string{"words, or fields: kind:hr ns:apps name:web ready:false state:failed suspended:true age<1h"}
	if len(m.sites) > 1 {
		fields[0] += " cluster:prod"
	}
	p := &prompt{inputs: []*textinput.Model{newInput("/")}, lines: fields}
	p.inputs[0].SetValue(before.Text)
	p.inputs[0].CursorEnd()
	apply := func(m *model, f live.Filter) {
		m.list.Filter = f
		m.list.Show(m.snapshot)
	}
	p.change = func(m *model, value string) {
		f, err := live.ParseFilter(value)
		if err != nil {
			p.lines = []string{printable.Line(err.Error())}
			return
		}
		p.lines = fields
		apply(m, f)
	}
	p.accept = func(*model) tea.Cmd { return nil }
	p.cancel = func(m *model) { apply(m, before) }
	return p
}

// destination is a target of the fuzzy jump.
type destination struct {
	text string
	open func(m *model) tea.Cmd
}

// destinations returns the objects, and the pages and actions for the selected object.
func destinations(m *model) []destination {
	var all []destination
	row, selected := m.list.Selected()
	for i, kind := range verbs.Pages() {
		if selected && kind.Has(*row.Kind) {
			all = append(all, destination{kind.Name, func(m *model) tea.Cmd { m.open(row, i); return nil }})
		}
	}
	for _, a := range verbs.Actions() {
		if selected && row.Object != nil && row.Kind.Has(a.Applies) {
			all = append(all, destination{a.Verb, func(m *model) tea.Cmd { return m.act(a.Key) }})
		}
	}
	all = append(all, destination{"quit", func(*model) tea.Cmd { return tea.Quit }})
	for _, row := range m.snapshot.Rows {
		all = append(all, destination{printable.Line(row.Key.String()), func(m *model) tea.Cmd {
			m.list.Jump(m.snapshot, row.Key)
			if m.page != nil {
				m.reopen()
			}
			return nil
		}})
	}
	return all
}

// jumpPrompt prompts for a destination: an object, page or action.
func jumpPrompt(m *model) *prompt {
	all := destinations(m)
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = d.text
	}
	p := &prompt{inputs: []*textinput.Model{newInput(":")}}
	var found []destination
	chosen := 0
	show := func() {
		p.lines = nil
		for i, d := range found {
			prefix := "  "
			if i == chosen {
				prefix = "> "
			}
			p.lines = append(p.lines, prefix+d.text)
		}
	}
	p.change = func(_ *model, value string) {
		found, chosen = nil, 0
		for i, match := range fuzzy.Find(value, texts) {
			if i == promptLines {
				break
			}
			found = append(found, all[match.Index])
		}
		show()
	}
	p.choose = func(step int) {
		chosen = max(0, min(len(found)-1, chosen+step))
		show()
	}
	p.accept = func(m *model) tea.Cmd {
		if chosen >= len(found) {
			m.status = "nothing found"
			return nil
		}
		return found[chosen].open(m)
	}
	return p
}
