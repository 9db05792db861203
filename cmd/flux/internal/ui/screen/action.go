package screen

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/child"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/live"
)

// activity is an action that runs or has ended.
type activity struct {
	title string
	rows  []live.Row
	run   int
	text  child.Transcript
	done  bool
	// preview is the prompt for which the activity prints the consequences.
	preview *prompt
}

// act prompts for confirmation of an action.
func (m *model) act(key string) tea.Cmd {
	i := slices.IndexFunc(verbs.Actions(), func(a verbs.Action) bool { return a.Key == key })
	if i < 0 {
		return nil
	}
	a := verbs.Actions()[i]
	switch {
	case m.sites.ReadOnly():
		m.status = a.Verb + " is disabled: the dashboard is read-only"
		return nil
	case m.action != nil && !m.action.done:
		m.status = "wait until this action has finished: " + m.action.title
		return nil
	}
	rows := m.list.Targets(m.snapshot)
	if m.page != nil {
		rows = []live.Row{m.page.row}
	}
	if i := slices.IndexFunc(m.snapshot.Rows, func(r live.Row) bool { return len(rows) == 1 && r.Key == rows[0].Key }); i >= 0 {
		rows[0] = m.snapshot.Rows[i] // the row of a page may be outdated
	}
	s := m.sites.Of(rows[0].Cluster)
	switch {
	case slices.ContainsFunc(rows, func(r live.Row) bool { return r.Cluster != rows[0].Cluster }):
		m.status = "the marked resources are on several clusters: mark resources of one cluster"
		return nil
	case s.Guard == config.ReadOnly:
		m.status = a.Verb + " is disabled: " + printable.Line(s.Name) + " is read-only"
		return nil
	}
	var taken []live.Row
	var excluded []string
	for _, row := range rows {
		switch name := printable.Line(row.Key.String()); {
		case row.Object == nil || !row.Kind.Has(a.Applies):
			excluded = append(excluded, name+" does not support "+a.Verb)
		case !a.If(row):
			excluded = append(excluded, name+" "+a.Else)
		default:
			taken = append(taken, row)
		}
	}
	if len(taken) == 0 {
		m.status = strings.Join(excluded, "; ")
		return nil
	}
	return m.ask(m.confirmation(a, taken, excluded))
}

// confirmation returns the prompt for an action.
func (m *model) confirmation(a verbs.Action, rows []live.Row, excluded []string) *prompt {
	what, s := printable.Line(rows[0].Key.String()), m.sites.Of(rows[0].Cluster)
	if len(rows) > 1 {
		what = output.Amount(len(rows), "resource")
	}
	p := &prompt{title: strings.ToUpper(a.Verb[:1]) + a.Verb[1:] + " " + what + "?", lines: []string{a.Effect}, on: map[string]bool{}}
	for _, row := range rows {
		if len(rows) > 1 {
			p.lines = append(p.lines, "  "+printable.Line(row.Key.String()))
		}
	}
	for _, line := range excluded {
		p.lines = append(p.lines, "not included: "+line)
	}
	for _, o := range a.Options {
		if slices.ContainsFunc(rows, func(r live.Row) bool { return o.Applies(*r.Kind) }) {
			p.options = append(p.options, o)
		}
	}
	switch {
	case s.Guard == config.TypeName:
		p.need = s.Name
		p.inputs = append(p.inputs, newInput("type the cluster name, "+printable.Line(s.Name)+": "))
	case a.Preview != "" && slices.ContainsFunc(rows, func(r live.Row) bool { return r.Kind.Applies() }):
		p.need = rows[0].ID.Name
		if len(rows) > 1 {
			p.need = strconv.Itoa(len(rows))
		}
		p.inputs = append(p.inputs, newInput("type "+printable.Line(p.need)+" to confirm: "))
	}
	first := len(p.inputs)
	for _, field := range a.Fields {
		p.inputs = append(p.inputs, newInput(field.Label))
	}
	p.check = func(m *model) error { return checkFields(m, p, a.Fields, first) }
	args := func(more ...string) []string {
		all := []string{a.Verb}
		for _, row := range rows {
			all = append(all, row.ID.String())
		}
		for _, o := range p.options {
			if p.on[o.Flag] {
				all = append(all, o.Flag)
			}
		}
		return append(all, more...)
	}
	p.accept = func(m *model) tea.Cmd {
		flags := slices.Clone(a.Flags)
		for i, field := range a.Fields {
			if value := p.value(first + i); value != "" {
				flags = append(flags, field.Flag+"="+value)
			}
		}
		title := fmt.Sprintf("flux %s %s", a.Verb, what)
		m.action = &activity{title: title, rows: rows}
		m.status = title + " …"
		m.action.run = m.run.Start(m.ctx, m.sites.Args(rows[0].Cluster, args(flags...)))
		clear(m.list.Marks)
		return nil
	}
	if a.Preview != "" {
		ctx, cancel := context.WithCancel(m.ctx)
		p.end, p.loading = cancel, true
		m.action = &activity{title: p.title, rows: rows, preview: p}
		m.action.run = m.run.Start(ctx, m.sites.Args(rows[0].Cluster, append(args(), a.Preview)))
	}
	return p
}

// checkFields returns an error if the value of a field is invalid. first is the index of the input of the first field.
func checkFields(m *model, p *prompt, fields []verbs.Field, first int) error {
	for i, field := range fields {
		if field.Check == nil {
			continue
		}
		if err := field.Check(p.value(first+i), m.app.Now()); err != nil {
			return err
		}
	}
	return nil
}

// actionEnded reports the result of an action, or shows its consequences.
func (m *model) actionEnded(msg child.End) {
	m.action.done = true
	if p := m.action.preview; p != nil {
		p.lines, p.loading = append(p.lines, m.action.text.Lines...), false
		m.status = ""
		if msg.Code != 0 || msg.Err != nil {
			p.accept, p.options, p.inputs = nil, nil, nil
			p.title = "Could not determine the consequences"
		}
		return
	}
	switch last := m.action.text.Last(); {
	case msg.Err != nil:
		m.status = "✗ running flux: " + msg.Err.Error()
	case msg.Code != 0:
		m.status = fmt.Sprintf("✗ %s failed (o shows the output): %s", m.action.title, last)
	default:
		m.status = m.action.title + ": " + last
	}
	if m.page != nil && m.page.at >= 0 {
		m.reload()
	}
}
