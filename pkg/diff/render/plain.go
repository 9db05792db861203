package render

import (
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// bitbucketMax is the maximum number of characters in a Bitbucket comment.
const bitbucketMax = 32768

// Plain returns a comment for hosts that show HTML as text, such as Bitbucket: like Markdown, but
// with headings in place of collapsed sections, and lists in place of tables.
func Plain(results []*diff.Result, limit int) string {
	heading := func(object, action string) string { return "#### " + Span(object) + " " + action }
	m := markup{Span, Span, heading, "", "\nDetails of %d of %d changes are omitted: the comment would be too long.\n"}
	return m.comment(m.plainSummary(results), results, limit)
}

// plainSummary returns the text above the sections.
func (m markup) plainSummary(results []*diff.Result) string {
	var owners []string
	for _, r := range results {
		name := Span(r.Owner.String())
		if r.Cluster != "" {
			name += " in " + Span(r.Cluster)
		}
		owners = append(owners, name+": "+counted(Sum([]*diff.Result{r})))
	}
	text := "### Flux: " + counted(Sum(results)) + "\n\n" + list(owners, "* %s\n") + "\n"
	for _, l := range []struct {
		title string
		lines []string
	}{
		{"Warnings", m.dangers(results)},
		{"Not compared", m.omissions(results)},
		{"Images", m.images(results, "%s %s: %s becomes %s")},
	} {
		if len(l.lines) > 0 {
			text += "**" + l.title + "**\n\n" + list(l.lines, "* %s\n") + "\n"
		}
	}
	return text
}

// Span returns a text on one line as code, without markup. The character that ends code is
// replaced.
func Span(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(short(s), "`", "'"))
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Fenced returns lines as a code block in a language, which may be "".
func Fenced(language, body string) string {
	// The fence must be longer than any in the text.
	fence := "```"
	for strings.Contains(body, fence) {
		fence += "`"
	}
	return fence + language + "\n" + body + fence
}
