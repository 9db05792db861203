package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

// Brief writes a line for each change and each problem, without fields, and the totals.
func Brief(w io.Writer, results []*diff.Result, s Style) error {
	var b bytes.Buffer
	for _, section := range Sections(results) {
		var part bytes.Buffer
		brief(&part, section.Results, s)
		section.write(&b, &part, s)
	}
	if all := totals(results); all != "" {
		fmt.Fprintln(&b, s.paint("", strings.TrimSpace(all)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func brief(b *bytes.Buffer, results []*diff.Result, s Style) {
	for _, r := range results {
		for _, c := range r.Changes {
			if c.Different() && c.Action != diff.Failed {
				fmt.Fprintf(b, "► %s %s\n", printable.Line(c.Object.String()), s.paint(opOf(c.Action), word(c.Action, r.Drift)))
			}
		}
	}
	for _, p := range problems(results) {
		fmt.Fprintf(b, "%s %s\n", []string{"✗", "⚠️", "⚠️"}[p.level], printable.Line(p.text))
	}
}
