package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/ui/overview"
	"github.com/fluxkit/flux/cmd/flux/internal/ui/paint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/live"
)

// header returns the lines with the cluster, its state, and the freshness of the data.
func header(m *model) []string {
	title := overview.Title(m.sites.Title(), m.snapshot)
	first := paint.Sides(m.styles.Strong.Render(title), freshness(m), m.width)
	counts := overview.Counts(m.snapshot)
	if !m.loaded {
		counts = "loading …"
	}
	var right []string
	if m.list.Filter.Text != "" {
		right = append(right, fmt.Sprintf("/%s: %d", printable.Line(m.list.Filter.Text), len(m.list.Rows)))
	}
	if n := len(m.list.Marks); n > 0 {
		right = append(right, fmt.Sprintf("%d marked", n))
	}
	if m.sites.ReadOnly() {
		right = append(right, "read-only")
	}
	lines := []string{first, paint.Sides(counts, m.styles.Cyan.Render(strings.Join(right, " · ")), m.width)}
	if unknown := append(m.snapshot.Unknown(), m.snapshot.Unread()...); len(unknown) > 0 {
		text := "not shown: " + printable.Line(redact.Text(strings.Join(unknown, "; ")))
		lines = append(lines, m.styles.Yellow.Render(paint.Filled(text, m.width)))
	}
	return lines
}

// freshness returns the connection state: live, loading or lost.
func freshness(m *model) string {
	loading, lost, since := 0, 0, time.Time{}
	for _, s := range m.snapshot.Sources {
		switch s.Access {
		case live.Loading:
			loading++
		case live.Lost:
			if lost++; since.IsZero() || s.Since.Before(since) {
				since = s.Since
			}
		}
	}
	switch {
	case lost > 0 && m.now.Sub(since) > lostGrace:
		return m.styles.Red.Render(fmt.Sprintf("connection lost %s ago (%d of %d kinds)", m.now.Sub(since).Round(time.Second), lost, len(m.snapshot.Sources)))
	case loading > 0 || !m.loaded:
		return m.styles.Yellow.Render(fmt.Sprintf("loading %d of %d kinds", loading, len(m.snapshot.Sources)))
	}
	return m.styles.Green.Render("live")
}
