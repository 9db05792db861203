package render

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #d0d7de; padding: .25rem .6rem; text-align: left; }
details { border: 1px solid #d0d7de; border-radius: 6px; margin: .5rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; } pre { overflow-x: auto; font-size: 13px; }
.added { color: #116329; background: #dafbe1; } .removed { color: #82071e; background: #ffebe9; } .head { color: #656d76; }
.danger { border-left: 4px solid #d1242f; padding-left: .8rem; }
@media (prefers-color-scheme: dark) {
 body { color: #e6edf3; background: #0d1117; } .added { color: #7ee787; background: #12261e; } .removed { color: #ffa198; background: #25171c; }
}
</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{range .Results}}{{if .Section}}
<h1>{{.Section}}</h1>{{end}}
<h2>{{.Name}}</h2>
{{if .Revision}}<p>{{.Revision}}</p>{{end}}
{{range .Warnings}}<p class="danger">{{.}}</p>{{end}}
{{range .Changes}}
<details{{if .Open}} open{{end}}>
<summary><code>{{.Name}}</code> {{.Verdict}}</summary>
{{range .Said}}<p class="danger">{{.}}</p>{{end}}
{{if .Lines}}<pre>{{range .Lines}}<span class="{{.Class}}">{{.Text}}</span>
{{end}}</pre>{{end}}
</details>
{{end}}{{end}}
</body>
</html>
`

type pageLine struct{ Class, Text string }

type pageChange struct {
	Name, Verdict string
	Open          bool
	Said          []string
	Lines         []pageLine
}

type pageResult struct {
	// Section is the title above the first result of a section.
	Section, Name, Revision string
	Warnings                []string
	Changes                 []pageChange
}

// HTML writes a self-contained page.
func HTML(w io.Writer, results []*diff.Result) error {
	data := struct {
		Title   string
		Results []pageResult
	}{Title: "Flux: " + counted(Sum(results))}
	for _, section := range Sections(results) {
		title := section.Title()
		for _, r := range section.Results {
			data.Results = append(data.Results, pageResultOf(r, title))
			title = ""
		}
	}
	parsed, err := template.New("page").Parse(page)
	if err != nil {
		return fmt.Errorf("parsing the page template: %w", err)
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, data); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// pageResultOf returns what is shown of a result, under the title of a section unless that is empty.
func pageResultOf(r *diff.Result, title string) pageResult {
	shown := pageResult{Section: title, Name: printable.Line(r.Owner.String()), Revision: printable.Line(r.Revision), Warnings: printable.Lines(r.Warnings)}
	if r.NotCompared != nil {
		shown.Warnings = append(shown.Warnings, omission(r))
	}
	for _, c := range r.Changes {
		if c.Different() {
			shown.Changes = append(shown.Changes, pageOf(c, r.Builds))
		}
	}
	return shown
}

func pageOf(c diff.Change, builds bool) pageChange {
	p := pageChange{Name: printable.Line(c.Object.String()), Verdict: verdict(c), Open: c.Action == diff.Failed || len(c.Dangers) > 0}
	if c.Action == diff.Failed {
		p.Said = append(p.Said, printable.Text(c.Reason))
	}
	p.Said = append(append(p.Said, Warnings(c)...), printable.Lines(c.Notes)...)
	for _, line := range strings.Split(strings.TrimRight(unified(c, builds), "\n"), "\n") {
		class := ""
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "@@"):
			class = "head"
		case line[0] == '+':
			class = "added"
		case line[0] == '-':
			class = "removed"
		}
		p.Lines = append(p.Lines, pageLine{class, line})
	}
	return p
}
