package screen

import (
	"fmt"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
)

// helpLines returns the list of all keys.
func helpLines(m *model) []string {
	line := func(key, text string) string { return fmt.Sprintf("  %-16s %s", key, text) }
	lines := []string{
		m.styles.Strong.Render("List"),
		line("j k g G", "move the cursor (or use arrow keys, page keys, mouse)"),
		line("/", "filter by words, kind:hr, ns:apps, ready:false or age<1h"),
		line(":", "jump to an object, a page or an action"),
		line("space, esc", "mark an object for an action, clear marks or the filter"),
		line("p, b", "go to the object's owner, go back"),
		line("e", "show or hide the object's events below the list"),
		line("y, n", "copy the name, notify when the object is ready"),
	}
	pages := ""
	for _, p := range verbs.Pages() {
		pages += p.Key + " " + p.Name + "  "
	}
	lines = append(lines, m.styles.Strong.Render("Pages"), line("enter, tab", "show why the object is in its state, next page"), "  "+pages,
		line("R W f", "reload, wrap lines, fold healthy branches of the tree"),
		line("c", "compare two revisions (history page)"))
	if m.sites.ReadOnly() {
		return append(lines, "", "The dashboard is read-only.", "", "any key closes")
	}
	lines = append(lines, m.styles.Strong.Render("Actions (with confirmation)"))
	keys := ""
	for _, a := range verbs.Actions() {
		keys += a.Key + " " + a.Verb + "  "
	}
	return append(lines, "  "+keys+"o output of the last action", "any key closes")
}
