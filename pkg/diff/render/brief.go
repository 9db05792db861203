package render

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

// Brief returns a line for each change and each problem, without fields, and the totals.
func Brief(results []*diff.Result, s Style) string {
	text := bySection(results, s, brief)
	if all := totals(results); all != "" {
		text += s.paint("", all) + "\n"
	}
	return text
}

func brief(b *strings.Builder, results []*diff.Result, s Style) {
	for _, r := range results {
		for _, c := range r.Changes {
			if c.Different() && c.Action != diff.Failed {
				fmt.Fprintf(b, "► %s %s\n", printable.Line(c.Object.String()), s.paint(opOf(c.Action), word(r, c)))
			}
		}
	}
	for _, p := range problems(results) {
		fmt.Fprintf(b, "%s %s\n", []string{"✗", "⚠️", "⚠️"}[p.level], printable.Line(p.text))
	}
}
