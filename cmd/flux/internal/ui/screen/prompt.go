package screen

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/paint"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
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
	// on holds the flags of the options that are selected.
	on map[string]bool
	// input reads a text. Without it, y or enter confirms.
	input *textinput.Model
	// need is the text that confirms, or "" for any.
	need string
	// loading is set until the lines are complete. The prompt cannot be confirmed until then.
	loading bool
	// change is called after each change of the input, and choose with the number of lines to move the selection. Both may be nil.
	change func(m *model, value string)
	choose func(step int)
	// accept is nil if there is nothing to confirm.
	accept func(m *model, value string) tea.Cmd
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

func (p *prompt) focus() tea.Cmd {
	if p.input == nil {
		return nil
	}
	return p.input.Focus()
}

// press handles a key. With an input, options require alt, because other keys are text.
func (p *prompt) press(m *model, key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	option := slices.IndexFunc(p.options, func(o verbs.Option) bool {
		return name == "alt+"+o.Key || p.input == nil && name == o.Key
	})
	switch {
	case name == "esc", p.input == nil && (name == "n" || name == "q"), p.accept == nil:
		p.close(m)
		if p.cancel != nil {
			p.cancel(m)
		}
		return nil
	case option >= 0:
		flag := p.options[option].Flag
		p.on[flag] = !p.on[flag]
		return nil
	case name == "enter", p.input == nil && name == "y":
		return p.confirm(m)
	case p.choose != nil && (name == "up" || name == "down"):
		p.choose(map[string]int{"up": -1, "down": 1}[name])
		return nil
	case p.input == nil:
		return nil
	}
	return p.typed(m, key)
}

func (p *prompt) typed(m *model, msg tea.Msg) tea.Cmd {
	in, cmd := p.input.Update(msg)
	*p.input = in
	if p.change != nil {
		p.change(m, in.Value())
	}
	return cmd
}

func (p *prompt) confirm(m *model) tea.Cmd {
	value := ""
	if p.input != nil {
		value = strings.TrimSpace(p.input.Value())
	}
	if p.loading || p.need != "" && value != p.need {
		return nil
	}
	p.close(m)
	return p.accept(m, value)
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
		lines = append(lines, m.styles.Faint.Render("  reading the consequences …"))
	}
	for _, o := range p.options {
		state, key := "off", o.Key
		if p.on[o.Flag] {
			state = m.styles.Strong.Render("on")
		}
		if p.input != nil {
			key = "alt+" + key
		}
		lines = append(lines, "  "+key+"  "+o.Flag+" ("+o.Text+"): "+state)
	}
	if p.input != nil {
		p.input.SetWidth(max(1, m.width-len(p.input.Prompt)-1))
		return append(lines, paint.Filled(p.input.View(), m.width))
	}
	keys := "y or enter confirms, n or esc cancels"
	if p.accept == nil {
		keys = "any key closes"
	}
	return append(lines, m.styles.Faint.Render(paint.Filled(keys, m.width)))
}

// filterPrompt changes the filter while it is typed.
func filterPrompt(m *model) *prompt {
	before := m.list.Filter
	hint := []string{"words, or fields: kind:hr ns:apps name:web ready:false state:failed suspended:true age<1h"}
	p := &prompt{input: newInput("/"), lines: hint}
	p.input.SetValue(before.Text)
	p.input.CursorEnd()
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
		p.lines = hint
		apply(m, f)
	}
	p.accept = func(*model, string) tea.Cmd { return nil }
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
		if selected && kind.Has(row.Kind) {
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
		all = append(all, destination{printable.Line(row.ID.String()), func(m *model) tea.Cmd {
			m.list.Jump(m.snapshot, row.ID)
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
	p := &prompt{input: newInput(":")}
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
	p.accept = func(m *model, _ string) tea.Cmd {
		if chosen >= len(found) {
			m.status = "nothing found"
			return nil
		}
		return found[chosen].open(m)
	}
	return p
}
