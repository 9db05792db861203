package render

import (
	"fmt"
	"html/template"
	"io"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// document is a page without scripts. The bars have the time from the creation of a resource until it
// was ready.
const document = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td { padding: .1rem .5rem .1rem 0; } td:last-child { width: 50%; }
svg { display: block; width: 100%; height: .8rem; } rect { fill: #2e7d43; } .error { border-left: 4px solid #d1242f; padding-left: .8rem; }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{if .Bars}}<h2>Ready, in this order</h2>
<table>{{range .Bars}}
<tr><td>{{.Name}}</td><td>{{.Time}}</td><td><svg viewBox="0 0 100 1" preserveAspectRatio="none"><rect x="{{.Start}}" width="{{.Width}}" height="1"></rect></svg></td></tr>{{end}}
</table>{{end}}
{{range .Sections}}{{if .Findings}}<h2>{{.Title}}</h2>
{{range .Findings}}<div class="{{.Level}}"><code>{{.Name}}</code> {{line .Message}}{{if .Details}}<ul>{{range .Details}}<li>{{line .}}</li>{{end}}</ul>{{end}}</div>
{{end}}{{end}}{{end}}
</body>
</html>
`

type bar struct {
	Name, Time, Start, Width string
}

// page writes a self-contained page.
func page(w io.Writer, r *examine.Report) error {
	ready, all := r.Count()
	data := struct {
		Title    string
		Bars     []bar
		Sections []section
	}{Title: fmt.Sprintf("Flux %s: %d of %d resources ready", r.Flux, ready, all)}
	if r.Path != "" {
		data.Title += " in " + printable.Line(r.Path)
	}
	for _, s := range r.Objects {
		if s.Status != settle.Ready {
			continue
		}
		const percent, narrowest = 100, 0.3
		whole := max(r.Seconds, 0.1)
		data.Bars = append(data.Bars, bar{
			Name: printable.Line(s.Object.String()), Time: fmt.Sprintf("%.1fs", s.After),
			Start: fmt.Sprintf("%.2f", max(s.After-s.Took, 0)/whole*percent), Width: fmt.Sprintf("%.2f", max(s.Took/whole*percent, narrowest)),
		})
	}
	data.Sections = append(sections(r), notes("warning", "Could not check", r.Unknown))
	if r.Timeline != nil {
		data.Sections = append(data.Sections, notes("notice", "Timeline after "+printable.Line(r.Timeline.Base), lines(r)))
	}
	data.Sections = append(data.Sections, notes("notice", "Tests", testLines(r)))
	parsed, err := template.New("page").Funcs(template.FuncMap{"line": printable.Line}).Parse(document)
	if err != nil {
		return fmt.Errorf("parsing the page template: %w", err)
	}
	return parsed.Execute(w, data)
}

// notes returns a section of lines.
func notes(level, title string, lines []string) section {
	s := section{Title: title}
	for _, line := range lines {
		s.Findings = append(s.Findings, finding{Level: level, Message: line})
	}
	return s
}
