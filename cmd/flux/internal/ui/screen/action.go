package screen

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/live"
)

// action is a command that changes objects.
type action struct {
	key, verb string
	applies   controllers.Verb
	// excludes returns why the action does not apply to an object of its kinds, or "".
	excludes func(live.Row) string
	// effect is what the action does.
	effect string
	// options are the flags that the confirmation offers.
	options []option
	// reason is set if the confirmation asks for a reason.
	reason bool
	// preview is the flag with which the command prints its consequences without a change.
	preview string
	flags   []string
}

// option is a flag that the confirmation offers with a key.
type option struct {
	key, flag, text string
	applies         func(controllers.Kind) bool
}

// actions lists the actions.
func actions() []action {
	isRelease := func(k controllers.Kind) bool { return k.Release }
	return []action{
		{
			key: "r", verb: "reconcile", applies: controllers.Reconcile, effect: "The controllers reconcile the current revision, and flux waits for the result.",
			excludes: func(row live.Row) string {
				if row.Suspended {
					return "is suspended: resume it first"
				}
				return ""
			},
			options: []option{
				{"s", "--with-source", "the sources first", controllers.Kind.HasUpstream},
				{"f", "--force", "upgrade even without changes", isRelease},
				{"x", "--reset", "reset the failure counts", isRelease},
			},
		},
		{
			key: "s", verb: "suspend", applies: controllers.Suspend, effect: "The controllers no longer reconcile it, until it is resumed.", reason: true,
			excludes: func(row live.Row) string {
				if row.Suspended {
					return "is suspended already"
				}
				return ""
			},
		},
		{
			key: "u", verb: "resume", applies: controllers.Resume, effect: "The controllers reconcile it again, and flux waits for the result.",
			excludes: func(row live.Row) string {
				if !row.Suspended {
					return "is not suspended"
				}
				return ""
			},
		},
		{
			key: "ctrl+d", verb: "delete", applies: controllers.Delete, preview: "--dry-run", flags: []string{"--yes"},
			excludes: func(live.Row) string { return "" },
			options:  []option{{"s", "--suspend-first", "keep the resources that it manages", controllers.Kind.Applies}},
		},
	}
}

// activity is an action that runs or has ended.
type activity struct {
	title string
	rows  []live.Row
	run   int
	text  transcript
	done  bool
	// preview is the prompt that shows the consequences that the activity prints.
	preview *prompt
}

// act asks for the confirmation of an action.
func (m *model) act(key string) tea.Cmd {
	i := slices.IndexFunc(actions(), func(a action) bool { return a.key == key })
	if i < 0 {
		return nil
	}
	a := actions()[i]
	switch {
	case m.guard == config.ReadOnly:
		m.status = a.verb + " is disabled: the dashboard is read-only"
		return nil
	case m.action != nil && !m.action.done:
		m.status = "wait for the end of: " + m.action.title
		return nil
	}
	rows := m.list.targets(m.snapshot)
	if m.page != nil {
		rows = []live.Row{m.page.row}
	}
	if i := slices.IndexFunc(m.snapshot.Rows, func(r live.Row) bool { return len(rows) == 1 && r.ID == rows[0].ID }); i >= 0 {
		rows[0] = m.snapshot.Rows[i] // that of a page may be older
	}
	var taken []live.Row
	var excluded []string
	for _, row := range rows {
		why := a.excludes(row)
		if row.Object == nil || !row.Kind.Has(a.applies) {
			why = "does not support " + a.verb
		}
		if why != "" {
			excluded = append(excluded, printable.Line(row.ID.String())+" "+why)
			continue
		}
		taken = append(taken, row)
	}
	if len(taken) == 0 {
		m.status = strings.Join(excluded, "; ")
		return nil
	}
	return m.ask(m.confirmation(a, taken, excluded))
}

// confirmation returns the prompt for an action.
func (m *model) confirmation(a action, rows []live.Row, excluded []string) *prompt {
	what := printable.Line(rows[0].ID.String())
	if len(rows) > 1 {
		what = output.Amount(len(rows), "resource")
	}
	p := &prompt{title: strings.ToUpper(a.verb[:1]) + a.verb[1:] + " " + what + "?", on: map[string]bool{}}
	if a.effect != "" {
		p.lines = append(p.lines, a.effect)
	}
	for _, row := range rows {
		if len(rows) > 1 {
			p.lines = append(p.lines, "  "+printable.Line(row.ID.String()))
		}
	}
	for _, line := range excluded {
		p.lines = append(p.lines, "not included: "+line)
	}
	for _, o := range a.options {
		if slices.ContainsFunc(rows, func(r live.Row) bool { return o.applies(r.Kind) }) {
			p.options = append(p.options, o)
		}
	}
	switch {
	case m.guard == config.TypeName:
		p.need = m.cluster
		p.input = newInput("type the name of the cluster, " + printable.Line(m.cluster) + ": ")
	case a.preview != "" && slices.ContainsFunc(rows, func(r live.Row) bool { return r.Kind.Applies() }):
		p.need = rows[0].ID.Name
		if len(rows) > 1 {
			p.need = strconv.Itoa(len(rows))
		}
		p.input = newInput("type " + printable.Line(p.need) + " to confirm: ")
	case a.reason:
		p.input = newInput("reason (optional): ")
	}
	args := func(more ...string) []string {
		all := append([]string{a.verb}, names(rows)...)
		for _, o := range p.options {
			if p.on[o.flag] {
				all = append(all, o.flag)
			}
		}
		return append(all, more...)
	}
	p.accept = func(m *model, value string) tea.Cmd {
		flags := slices.Clone(a.flags)
		if a.reason && p.need == "" && value != "" {
			flags = append(flags, "--reason="+value)
		}
		title := fmt.Sprintf("flux %s %s", a.verb, what)
		m.action = &activity{title: title, rows: rows}
		m.status = title + " …"
		m.action.run = m.run.start(m.ctx, args(flags...))
		clear(m.list.marks)
		return nil
	}
	if a.preview != "" {
		ctx, cancel := context.WithCancel(m.ctx)
		p.end, p.loading = cancel, true
		m.action = &activity{title: p.title, rows: rows, preview: p}
		m.action.run = m.run.start(ctx, append(args(), a.preview))
	}
	return p
}

// actionEnded reports the result of an action, or shows its consequences.
func (m *model) actionEnded(msg endedMsg) {
	m.action.done = true
	if p := m.action.preview; p != nil {
		p.lines, p.loading = append(p.lines, m.action.text.lines...), false
		m.status = ""
		if msg.code != 0 || msg.err != nil {
			p.accept, p.options, p.input = nil, nil, nil
			p.title = "The consequences could not be determined"
		}
		return
	}
	switch last := m.action.text.last(); {
	case msg.err != nil:
		m.status = "✗ running flux: " + msg.err.Error()
	case msg.code != 0:
		m.status = fmt.Sprintf("✗ %s has failed; o shows the output: %s", m.action.title, last)
	default:
		m.status = m.action.title + ": " + last
	}
	if m.page != nil && m.page.at >= 0 {
		m.reload()
	}
}
