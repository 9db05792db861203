package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// CommentMax is the maximum number of characters in a GitHub comment.
const CommentMax = 65536

// Markdown writes a comment for a pull request: a table of the totals, the dangers and changed
// images, and the changes of each object in collapsed sections. If the comment would exceed limit
// bytes, sections are omitted, and the comment notes it; 0 means no limit.
func Markdown(w io.Writer, results []*diff.Result, limit int) error {
	head := heading(results)
	var details []titled
	for _, section := range Sections(results) {
		for _, r := range section.Results {
			for _, c := range r.Changes {
				if c.Different() {
					details = append(details, titled{inline(section.Title()), detail(c, r.Builds)})
				}
			}
		}
	}
	full := head + joined(details)
	if limit > 0 && len(full) > limit {
		full = shortened(head, details, limit, leftOut)
	}
	_, err := io.WriteString(w, full)
	return err
}

// titled is a text below the title of its section, which may be empty and is Markdown.
type titled struct{ title, text string }

// joined returns texts with each title once.
func joined(all []titled) string {
	var b strings.Builder
	title := ""
	for _, t := range all {
		if t.title != title {
			title = t.title
			b.WriteString(subtitle(title))
		}
		b.WriteString(t.text)
	}
	return b.String()
}

func subtitle(title string) string { return "\n#### " + title + "\n\n" }

// shortened omits the texts that do not fit.
func shortened(head string, details []titled, most int, leftOut string) string {
	room := most - len(head) - len(fmt.Sprintf(leftOut, len(details), len(details)))
	var kept []titled
	title := ""
	for _, d := range details {
		size := len(d.text)
		if d.title != title {
			size += len(subtitle(d.title))
		}
		if size <= room {
			kept = append(kept, d)
			room -= size
			title = d.title
		}
	}
	text := head + joined(kept) + fmt.Sprintf(leftOut, len(details)-len(kept), len(details))
	if len(text) > most {
		text = cutAt(text, most)
	}
	return text
}

// leftOut is the note in a comment with omitted sections.
const leftOut = "\n> [!NOTE]\n> Details of %d of %d changes are left out: the comment would be too long.\n"

// heading returns the text above the sections.
func heading(results []*diff.Result) string {
	var b bytes.Buffer
	b.WriteString("### " + title(Sum(results), results) + "\n\n")
	writeTable(&b, results)
	writeOmissions(&b, results)
	writeDangers(&b, results)
	writeImages(&b, results)
	return b.String()
}

// title returns the totals in one line.
func title(s Summary, results []*diff.Result) string {
	names := different(results)
	if len(names) == 0 {
		names = clustersOf(results)
	}
	for i, name := range names {
		names[i] = code(name)
	}
	if len(names) == 0 {
		for _, r := range results {
			names = append(names, code(strings.TrimPrefix(r.Owner.String(), "Kustomization/")))
		}
	}
	const few = 3
	if len(names) > few {
		names = append(names[:few], fmt.Sprintf("%d more", len(names)-few))
	}
	return "Flux: " + counted(s) + " in " + strings.Join(names, ", ")
}

func counted(s Summary) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{s.Created, "created"}, {s.Changed, "changed"}, {s.Recreated, "recreated"}, {s.Pruned, "deleted"},
		{s.Encrypted, "encrypted"}, {s.Failed, "failing"}, {s.Blocked, "blocked"}, {s.Unstable, "unstable"}, {s.Ignored, "ignored"}, {s.NotCompared, "not compared"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if s.NotCorrected > 0 {
		parts = append(parts, fmt.Sprintf("%d not corrected", s.NotCorrected))
	}
	if len(parts) == 0 {
		return "no changes"
	}
	return strings.Join(parts, ", ")
}

func writeTable(b *bytes.Buffer, results []*diff.Result) {
	if clusters := byCluster(results); len(clusters) > 0 {
		b.WriteString("| cluster | created | changed | recreated | deleted | failing | not compared |\n|---|---|---|---|---|---|---|\n")
		for _, c := range clusters {
			fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %d |\n", code(c.Cluster), c.Created, c.Changed+c.Encrypted, c.Recreated, c.Pruned, c.Failed, c.NotCompared)
		}
		b.WriteString("\n")
		return
	}
	b.WriteString("| Kustomization | created | changed | recreated | deleted | failing | unchanged |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %d |\n", code(strings.TrimPrefix(r.Owner.String(), "Kustomization/")),
			r.Count(diff.Created), r.Count(diff.Changed)+r.Count(diff.Encrypted), r.Count(diff.Recreated), r.Count(diff.Pruned), r.Count(diff.Failed), r.Count(diff.Unchanged))
	}
	b.WriteString("\n")
}

// writeOmissions lists what was not compared.
func writeOmissions(b *bytes.Buffer, results []*diff.Result) {
	var lines []string
	for _, section := range Sections(results) {
		for _, r := range section.Results {
			if r.NotCompared != nil {
				lines = append(lines, fmt.Sprintf("> %s: %s%s<br>\n", code(r.Owner.String()), inline(r.NotCompared.Reason), inline(section.In())))
			}
		}
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("> and %d more\n", len(lines)-mostLines))
	}
	if len(lines) > 0 {
		b.WriteString("> [!WARNING]\n> Not compared:<br>\n" + strings.Join(lines, "") + "\n")
	}
}

// Warnings returns the effects of the dangers of a change.
func Warnings(c diff.Change) []string { return Effects(c.Dangers) }

// Effects returns the effects of dangers, without notices if there is more than a notice.
func Effects(dangers []diff.Danger) []string {
	var said []string
	more := slices.ContainsFunc(dangers, func(d diff.Danger) bool { return !d.Notice })
	for _, d := range dangers {
		if d.Notice && more {
			continue
		}
		text := printable.Line(review.Effect(d))
		if d.Allowed != "" {
			text += " (allowed by " + printable.Line(d.Allowed) + ")"
		}
		said = append(said, text)
	}
	return said
}

func writeDangers(b *bytes.Buffer, results []*diff.Result) {
	var lines []string
	for _, section := range Sections(results) {
		end := inline(section.In()) + "<br>\n"
		for _, r := range section.Results {
			for _, line := range dangerLines(r) {
				lines = append(lines, "> "+line+end)
			}
		}
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("> and %d more\n", len(lines)-mostLines))
	}
	if len(lines) > 0 {
		b.WriteString("> [!WARNING]\n" + strings.Join(lines, "") + "\n")
	}
}

// dangerLines returns the warnings, failures and dangers of a result.
func dangerLines(r *diff.Result) []string {
	var lines []string
	for _, w := range r.Warnings {
		lines = append(lines, inline(w))
	}
	for _, said := range Effects(r.Dangers) {
		lines = append(lines, fmt.Sprintf("%s %s", code(r.Owner.String()), inline(said)))
	}
	for _, c := range r.Changes {
		for _, said := range imageProblems(c) {
			lines = append(lines, fmt.Sprintf("✗ %s %s", code(c.Object.String()), inline(said)))
		}
		if c.Action == diff.Failed {
			lines = append(lines, fmt.Sprintf("✗ %s cannot be applied: %s", code(c.Object.String()), inline(c.Reason)))
		} else if len(c.Dangers) > 0 {
			lines = append(lines, fmt.Sprintf("%s %s", code(c.Object.String()), inline(strings.Join(Warnings(c), ", "))))
		}
	}
	return lines
}

// inline returns a text on one line, with markup escaped. One that could be
// markup, or name a person, an issue or an address, is shown as code: there
// neither Markdown nor GitHub and GitLab look for anything.
func inline(s string) string {
	s = short(s)
	if s == "" || !strings.ContainsAny(s, "<>&`*_[]~|\\@#!$%^{}") && !strings.Contains(s, "://") && !strings.Contains(s, "www.") {
		return s
	}
	return "<code>" + entities(s) + "</code>"
}

// escaped returns a text within HTML's code element.
func escaped(s string) string { return entities(short(s)) }

func short(s string) string {
	s = printable.Line(s)
	const most = 300
	if len(s) > most {
		s = cutAt(s, most) + "…"
	}
	return s
}

// entities returns a text in which what means something to HTML or Markdown is
// an entity.
func entities(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("<>&\"'`*_[]()~|\\@#!$:{}", r) {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func writeImages(b *bytes.Buffer, results []*diff.Result) {
	var rows []string
	for _, section := range Sections(results) {
		for _, r := range section.Results {
			for _, c := range r.Changes {
				for _, i := range c.Images {
					if c.Before != nil && c.After != nil {
						rows = append(rows, fmt.Sprintf("| %s%s | %s | %s | %s |\n", code(c.Object.String()), inline(section.In()), code(i.Container), code(i.Before), code(i.After)))
					}
				}
			}
		}
	}
	if len(rows) > mostLines {
		rows = append(rows[:mostLines], fmt.Sprintf("| and %d more | | | |\n", len(rows)-mostLines))
	}
	if len(rows) > 0 {
		b.WriteString("| object | container | image | becomes |\n|---|---|---|---|\n" + strings.Join(rows, "") + "\n")
	}
}

// code shows a text as code.
func code(s string) string {
	s = short(s)
	switch {
	case s == "":
		return ""
	case strings.ContainsAny(s, "`|\\<") || strings.TrimSpace(s) != s:
		return "<code>" + entities(s) + "</code>"
	}
	return "`" + s + "`"
}

// detail returns the collapsed section of a change.
func detail(c diff.Change, builds bool) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<details><summary><code>%s</code> %s</summary>\n\n", escaped(c.Object.String()), verdict(c))
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "%s\n\n", inline(note))
	}
	if body := unified(c, builds); body != "" && c.Action != diff.Encrypted {
		b.WriteString(Fenced("diff", body) + "\n\n")
	}
	b.WriteString("</details>\n")
	return b.String()
}

func verdict(c diff.Change) string {
	if c.Action == diff.Failed {
		return "cannot be applied"
	}
	return words[c.Action]
}

// cutAt shortens a text without splitting a character.
func cutAt(s string, most int) string {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Totals returns the totals of all results on one line.
func Totals(results []*diff.Result) string { return counted(Sum(results)) }
