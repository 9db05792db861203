package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light; --text: #1f2328; --page: #fff; --line: #d0d7de; --dim: #656d76; --danger: #d1242f;
 --added: #116329; --added-page: #dafbe1; --removed: #82071e; --removed-page: #ffebe9; }
:root[data-theme=dark] { color-scheme: dark; --text: #e6edf3; --page: #0d1117; --line: #30363d; --dim: #8d96a0; --danger: #f85149;
 --added: #7ee787; --added-page: #12261e; --removed: #ffa198; --removed-page: #25171c; }
@media (prefers-color-scheme: dark) {
 :root:not([data-theme=light]) { color-scheme: dark; --text: #e6edf3; --page: #0d1117; --line: #30363d; --dim: #8d96a0; --danger: #f85149;
  --added: #7ee787; --added-page: #12261e; --removed: #ffa198; --removed-page: #25171c; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: var(--text); background: var(--page); overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
form { position: sticky; top: 0; padding: .5rem 0; background: var(--page); display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
form[hidden], [data-hidden] { display: none; }
input, button { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .2rem .6rem; }
input { flex: 1 1 12rem; } button { cursor: pointer; } output { color: var(--dim); }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; } pre { overflow-x: auto; font-size: 13px; overflow-wrap: normal; }
.added { color: var(--added); background: var(--added-page); } .removed { color: var(--removed); background: var(--removed-page); } .head { color: var(--dim); }
.danger { border-left: 4px solid var(--danger); padding-left: .8rem; }
@media print { form { display: none; } }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
<form hidden>
<input type="search" placeholder="Filter by text" aria-label="Filter by text" autocomplete="off">
<button type="button" name="expand">Expand all</button>
<button type="button" name="collapse">Collapse all</button>
<button type="button" name="theme">Light or dark</button>
<output></output>
</form>
{{range .Results}}
<section>
{{if .Section}}<h1>{{.Section}}</h1>{{end}}
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
{{end}}
</section>
{{end}}
<script>{{.Script}}</script>
</body>
</html>
`

// script adds the filter and the buttons. The page is complete without it, because
// details elements need no script. It only reads the text of elements.
const script = `
"use strict";
const form = document.querySelector("form"), output = form.querySelector("output"), search = form.querySelector("input");
const all = [...document.querySelectorAll("details")], sections = [...document.querySelectorAll("section")];
const text = new Map(all.map(e => [e, e.textContent.toLowerCase()]));
const shown = () => all.filter(e => !("hidden" in e.dataset));
const hide = (e, hidden) => { if (hidden) e.dataset.hidden = ""; else delete e.dataset.hidden; };
const filter = () => {
 const words = search.value.toLowerCase().split(" ").filter(w => w !== "");
 for (const e of all) hide(e, !words.every(w => text.get(e).includes(w)));
 for (const s of sections) hide(s, words.length > 0 && ![...s.querySelectorAll("details")].some(e => !("hidden" in e.dataset)) && !words.every(w => s.textContent.toLowerCase().includes(w)));
 output.textContent = words.length > 0 ? shown().length + " of " + all.length : "";
};
search.addEventListener("input", filter);
form.addEventListener("submit", e => e.preventDefault());
form.elements.expand.addEventListener("click", () => { for (const e of shown()) e.open = true; });
form.elements.collapse.addEventListener("click", () => { for (const e of shown()) e.open = false; });
form.elements.theme.addEventListener("click", () => {
 const root = document.documentElement.dataset, dark = matchMedia("(prefers-color-scheme: dark)").matches;
 root.theme = (root.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
});
form.hidden = false;
`

// policy allows only this script, and no connections.
func policy() string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

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
		Title, Policy string
		Script        template.JS
		Results       []pageResult
	}{Title: "Flux: " + counted(Sum(results)), Policy: policy(), Script: script}
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
	p.Said = append(append(append(p.Said, printable.Lines(imageProblems(c))...), Warnings(c)...), printable.Lines(c.Notes)...)
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
