package render

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

// CommentMax is the maximum number of characters in a GitHub comment.
const CommentMax = 65536

// Markdown returns a comment for a pull request: a table of the totals, the dangers and changed
// images, and the changes of each object in collapsed sections. If the comment would exceed limit
// bytes, sections are omitted, and the comment notes it; 0 means no limit.
func Markdown(results []*diff.Result, limit int) string {
	heading := func(object, action string) string {
		return "<details><summary><code>" + escaped(object) + "</code> " + action + "</summary>"
	}
	m := markup{inline, code, heading, "</details>\n", "\n> [!NOTE]\n> Details of %d of %d changes are omitted: the comment would be too long.\n"}
	return m.comment(m.summary(results), results, limit)
}

// summary returns the text above the sections.
func (m markup) summary(results []*diff.Result) string {
	var b strings.Builder
	b.WriteString("### " + title(Sum(results), results) + "\n\n")
	writeTable(&b, results)
	if omitted := m.omissions(results); len(omitted) > 0 {
		b.WriteString("> [!WARNING]\n> Not compared:<br>\n" + list(omitted, "> %s<br>\n") + "\n")
	}
	if dangers := m.dangers(results); len(dangers) > 0 {
		b.WriteString("> [!WARNING]\n" + list(dangers, "> %s<br>\n") + "\n")
	}
	if images := m.images(results, "%s | %s | %s | %s"); len(images) > 0 {
		b.WriteString("| object | container | image | becomes |\n|---|---|---|---|\n" + list(images, "| %s |\n") + "\n")
	}
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

func writeTable(b *strings.Builder, results []*diff.Result) {
	const head = "| %s | created | changed | recreated | deleted | failing | %s |\n|---|---|---|---|---|---|---|\n"
	row := func(name string, s Summary, last int) {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %d |\n", code(name), s.Created, s.Changed+s.Encrypted, s.Recreated, s.Pruned, s.Failed, last)
	}
	if clusters := byCluster(results); len(clusters) > 0 {
		fmt.Fprintf(b, head, "cluster", "not compared")
		for _, c := range clusters {
			row(c.Cluster, c.Summary, c.NotCompared)
		}
	} else {
		fmt.Fprintf(b, head, "Kustomization", "unchanged")
		for _, r := range results {
			s := Sum([]*diff.Result{r})
			row(strings.TrimPrefix(r.Owner.String(), "Kustomization/"), s, s.Unchanged)
		}
	}
	b.WriteString("\n")
}

// inline returns a text on one line, with markup escaped. Text that could be markup, a mention,
// an issue or an address is shown as code, which GitHub and GitLab do not interpret.
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

// entities returns a text with the special characters of HTML and Markdown as entities.
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
