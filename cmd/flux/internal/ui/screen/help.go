package screen

import (
	"fmt"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/verbs"
	"github.com/fluxkit/flux/internal/config"
)

// helpLines returns the list of all keys.
func helpLines(m *model) []string {
	line := func(key, text string) string { return fmt.Sprintf("  %-16s %s", key, text) }
	lines := []string{
		m.styles.Strong.Render("List"),
		line("j k g G", "move the cursor (or use arrow keys, page keys, mouse)"),
		line("/", "filter by words, kind:hr, ns:apps, ready:false or age<1h"),
		line(":", "jump to an object, a page or an action"),
		line("space, esc", "mark an object for an action, remove marks or the filter"),
		line("p, b", "go to the owner of the object, go back"),
		line("e", "show or hide the events of the object below the list"),
		line("y, n", "copy the name, notify when the object is ready"),
	}
	pageKeys := ""
	for _, p := range verbs.Pages() {
		pageKeys += p.Key + " " + p.Name + "  "
	}
	lines = append(lines, m.styles.Strong.Render("Pages"), line("enter, tab", "explain the state of the object, next page"), "  "+pageKeys,
		line("R W f", "reload, wrap lines, fold healthy branches of the tree"))
	if m.guard == config.ReadOnly {
		return append(lines, "", "The dashboard is read-only.", "", "any key closes")
	}
	lines = append(lines, m.styles.Strong.Render("Actions, each after a confirmation"))
	keys := ""
	for _, a := range verbs.Actions() {
		keys += a.Key + " " + a.Verb + "  "
	}
	return append(lines, "  "+keys+"o output of the last action", "any key closes")
}
