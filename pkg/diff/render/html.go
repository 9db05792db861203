package render

import (
	"crypto/sha256"
	_ "embed" // the page and its script
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

//go:embed page.html
var page string

// script adds the filter and the buttons. The page is complete without it, because
// details elements need no script. It only reads the text of elements.
//
//go:embed page.js
var script string

// policy allows only this script, and no connections.
func policy() string {
	sum := sha256.Sum256([]byte("\n" + script))
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

// HTML returns a self-contained page.
func HTML(results []*diff.Result, c Comparison) string {
	var summary, body strings.Builder
	if text := c.dated(); text != "" {
		paragraph(&summary, "", text)
	}
	for _, risk := range risks(results) {
		paragraph(&summary, danger, risk)
	}
	for _, section := range Sections(results) {
		title := section.Title()
		for _, r := range section.Results {
			pageResultOf(r, title).write(&body)
			title = ""
		}
	}
	return strings.NewReplacer(
		"${title}", html.EscapeString("Flux: "+counted(Sum(results))), "${policy}", html.EscapeString(policy()),
		"${summary}", summary.String(), "${results}", body.String(), "${script}", "\n"+script,
	).Replace(page)
}

// danger is the class of warnings and risks.
const danger = "danger"

// paragraph writes a text as a paragraph with a class, or without one if it is "".
func paragraph(b *strings.Builder, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	b.WriteString("<p" + class + ">" + html.EscapeString(text) + "</p>\n")
}

// write writes the result as a section.
func (r pageResult) write(b *strings.Builder) {
	b.WriteString("<section>\n")
	if r.Section != "" {
		b.WriteString("<h1>" + html.EscapeString(r.Section) + "</h1>\n")
	}
	b.WriteString("<h2>" + html.EscapeString(r.Name) + "</h2>\n")
	if r.Revision != "" {
		paragraph(b, "", r.Revision)
	}
	for _, warning := range r.Warnings {
		paragraph(b, danger, warning)
	}
	for _, c := range r.Changes {
		open := ""
		if c.Open {
			open = " open"
		}
		b.WriteString("<details" + open + ">\n<summary><code>" + html.EscapeString(c.Name) + "</code> " + html.EscapeString(c.Verdict) + "</summary>\n")
		for _, text := range c.Said {
			paragraph(b, danger, text)
		}
		if len(c.Lines) > 0 {
			b.WriteString("<pre>")
			for _, line := range c.Lines {
				b.WriteString(`<span class="` + line.Class + `">` + html.EscapeString(line.Text) + "</span>\n")
			}
			b.WriteString("</pre>\n")
		}
		b.WriteString("</details>\n")
	}
	b.WriteString("</section>\n")
}

// risks returns a line for each failure and each danger, the most severe first.
func risks(results []*diff.Result) []string {
	var found []problem
	for _, section := range Sections(results) {
		for _, p := range problems(section.Results) {
			if p.level != notice {
				p.text = printable.Line(p.text) + section.In()
				found = append(found, p)
			}
		}
	}
	slices.SortStableFunc(found, compareProblems)
	var lines []string
	for _, p := range found[:min(len(found), mostLines)] {
		lines = append(lines, p.text)
	}
	if more := len(found) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// pageResultOf returns the displayed parts of a result, with the title of its section, which may be
// empty.
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
		if line == "" {
			continue
		}
		op, headed := lineOp(line)
		class := string(op)
		if headed {
			class = "head"
		}
		p.Lines = append(p.Lines, pageLine{class, line})
	}
	return p
}
