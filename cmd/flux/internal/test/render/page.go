package render

import (
	"fmt"
	markup "html"
	"io"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// document is a page without scripts. The bars show the time from the creation of a resource until it was
// ready.
const document = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td { padding: .1rem .5rem .1rem 0; } td:last-child { width: 50%; }
svg { display: block; width: 100%; height: .8rem; } rect { fill: #2e7d43; } .error { border-left: 4px solid #d1242f; padding-left: .8rem; }
</style>
</head>
<body>
<h1>${title}</h1>
${body}</body>
</html>
`

// page writes a self-contained page.
func page(w io.Writer, r *examine.Report) error {
	ready, all := r.Count()
	title := fmt.Sprintf("Flux %s: %d of %d resources ready", r.Flux, ready, all)
	if r.Path != "" {
		title += " in " + r.Path
	}
	shown := append(sections(r), notes("warning", "Could not check", r.Unknown))
	if r.Timeline != nil {
		shown = append(shown, notes("notice", "Timeline after "+r.Timeline.Base, lines(r)))
	}
	shown = append(shown, notes("notice", "Tests", testLines(r)))
	var body strings.Builder
	bars(&body, r)
	for _, s := range shown {
		s.write(&body)
	}
	_, err := strings.NewReplacer("${title}", escaped(title), "${body}", body.String()).WriteString(w, document)
	return err
}

// escaped returns a text for HTML on one line.
func escaped(text string) string { return markup.EscapeString(printable.Line(text)) }

// bars writes a table of the ready resources with the time that each took.
func bars(b *strings.Builder, r *examine.Report) {
	const percent, narrowest = 100, 0.3
	var rows strings.Builder
	for _, s := range r.Objects {
		if s.Status != settle.Ready {
			continue
		}
		whole := max(r.Seconds, 0.1)
		fmt.Fprintf(&rows, `<tr><td>%s</td><td>%.1fs</td><td><svg viewBox="0 0 100 1" preserveAspectRatio="none"><rect x="%.2f" width="%.2f" height="1"></rect></svg></td></tr>`+"\n",
			escaped(s.Object.String()), s.After, max(s.After-s.Took, 0)/whole*percent, max(s.Took/whole*percent, narrowest))
	}
	if rows.Len() > 0 {
		b.WriteString("<h2>Ready, in this order</h2>\n<table>\n" + rows.String() + "</table>\n")
	}
}

// write writes the section unless it is empty.
func (s section) write(b *strings.Builder) {
	if len(s.Findings) > 0 {
		b.WriteString("<h2>" + escaped(s.Title) + "</h2>\n")
	}
	for _, f := range s.Findings {
		b.WriteString(`<div class="` + escaped(f.Level) + `"><code>` + escaped(f.Name()) + "</code> " + escaped(f.Message))
		if len(f.Details) > 0 {
			b.WriteString("<ul>")
			for _, detail := range f.Details {
				b.WriteString("<li>" + escaped(detail) + "</li>")
			}
			b.WriteString("</ul>")
		}
		b.WriteString("</div>\n")
	}
}

// notes returns a section of lines.
func notes(level, title string, lines []string) section {
	s := section{Title: title}
	for _, line := range lines {
		s.Findings = append(s.Findings, finding{Level: level, Message: line})
	}
	return s
}
