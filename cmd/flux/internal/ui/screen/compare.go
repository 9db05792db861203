package screen

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/rows"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/live"
)

// compareRevisions prompts for two revisions in the history of an object, and shows the changes between them.
func compareRevisions(m *model, row live.Row) tea.Cmd {
	revisions := verbs.Revisions(row)
	switch name := printable.Line(row.Key.String()); {
	case !verbs.ComparesRevisions(*row.Kind):
		m.status = "revisions of " + name + " cannot be compared: only Kustomizations support it"
		return nil
	case len(revisions) < 2:
		m.status = "the history of " + name + " has fewer than two revisions"
		return nil
	}
	list := &rows.Picker{Marks: map[int]bool{}}
	for _, revision := range revisions {
		list.Items = append(list.Items, printable.Line(controllers.Shorten(revision)))
	}
	p := &prompt{title: "Which revisions?", keys: "enter compares with the previous revision; space marks two; esc cancels", lines: list.Lines()}
	p.choose = func(step int) {
		list.Move(step)
		p.lines, p.problem = list.Lines(), ""
	}
	p.mark = func() {
		list.Mark()
		p.lines, p.problem = list.Lines(), ""
	}
	p.check = func(*model) error {
		_, _, err := list.Pair()
		return err
	}
	p.accept = func(m *model) tea.Cmd {
		older, newer, _ := list.Pair() // checked
		if m.page != nil {
			m.page.close()
		}
		shown := newPage(m, row)
		shown.title = fmt.Sprintf("%s from %s to %s", printable.Line(row.Key.String()), list.Items[older], list.Items[newer])
		shown.keys = "h history  W wrap  esc list  ? help"
		m.page = shown
		shown.load(m, verbs.RevisionDiff(row, revisions[older], revisions[newer]))
		return nil
	}
	return m.ask(p)
}
