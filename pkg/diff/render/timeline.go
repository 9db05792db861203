package render

import (
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff/timeline"
)

// Timelines returns the timelines of clusters in one of ListFormats.
func Timelines(format string, all []*timeline.Prediction) (string, error) {
	if format == "json" {
		return encode(struct {
			Timelines []*timeline.Prediction `json:"timelines"`
		}{append([]*timeline.Prediction{}, all...)})
	}
	var b strings.Builder
	for _, p := range all {
		in := ""
		if p.Cluster != "" {
			in = " of " + p.Cluster
		}
		var entries, blocked []string
		for _, e := range p.Entries {
			entries = append(entries, e.String())
		}
		for _, o := range p.Blocked {
			blocked = append(blocked, o.String())
		}
		headed(&b, "Timeline"+in, entries)
		headed(&b, "Blocked"+in, blocked)
		headed(&b, "Could not check"+in, p.Unknown)
	}
	return b.String(), nil
}

// headed writes lines below a title, or nothing if there are no lines.
func headed(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	b.WriteString(printable.Line(title) + "\n")
	for _, line := range lines {
		b.WriteString("  " + printable.Line(line) + "\n")
	}
}
