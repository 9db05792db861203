package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// bitbucketMax is the maximum number of characters in a Bitbucket comment.
const bitbucketMax = 32768

// Plain writes a comment for hosts that show HTML as text, such as Bitbucket: like Markdown, but
// with headings in place of collapsed sections, and lists in place of tables.
func Plain(w io.Writer, results []*diff.Result, limit int) error {
	head := plainHeading(results)
	var details []titled
	for _, section := range Sections(results) {
		for _, r := range section.Results {
			for _, c := range r.Changes {
				if c.Different() {
					details = append(details, titled{Span(section.Title()), plainDetail(c, r.Builds)})
				}
			}
		}
	}
	full := head + joined(details)
	if limit > 0 && len(full) > limit {
		full = shortened(head, details, limit, plainLeftOut)
	}
	_, err := io.WriteString(w, full)
	return err
}

// plainLeftOut is the note in a comment with omitted sections.
const plainLeftOut = "\nDetails of %d of %d changes are left out: the comment would be too long.\n"

// mostLines is the number of lines of each list in a comment.
const mostLines = 50

func plainHeading(results []*diff.Result) string {
	var b bytes.Buffer
	b.WriteString("### Flux: " + counted(Sum(results)) + "\n\n")
	var lists plainLists
	for _, r := range results {
		name := Span(r.Owner.String())
		if r.Cluster != "" {
			name += " in " + Span(r.Cluster)
		}
		lists.owners = append(lists.owners, fmt.Sprintf("%s: %s", name, counted(Sum([]*diff.Result{r}))))
	}
	for _, section := range Sections(results) {
		in := ""
		if section.In() != "" {
			in = " " + Span(section.In())
		}
		for _, r := range section.Results {
			lists.add(r, in)
		}
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"", lists.owners}, {"Warnings", lists.dangers}, {"Not compared", lists.omitted}, {"Images", lists.images}} {
		writeList(&b, list.title, list.lines)
	}
	return b.String()
}

// plainLists are the lists of a comment.
type plainLists struct{ owners, omitted, dangers, images []string }

// add adds the dangers, omissions and images of a result; in names its clusters.
func (l *plainLists) add(r *diff.Result, in string) {
	if r.NotCompared != nil {
		l.omitted = append(l.omitted, Span(r.Owner.String())+": "+Span(r.NotCompared.Reason)+in)
	}
	for _, w := range append(append([]string{}, r.Warnings...), Effects(r.Dangers)...) {
		l.dangers = append(l.dangers, Span(r.Owner.String())+": "+Span(w)+in)
	}
	for _, c := range r.Changes {
		switch {
		case c.Action == diff.Failed:
			l.dangers = append(l.dangers, Span(c.Object.String())+" cannot be applied: "+Span(c.Reason)+in)
		case len(c.Dangers) > 0:
			l.dangers = append(l.dangers, Span(c.Object.String())+": "+Span(strings.Join(Warnings(c), ", "))+in)
		}
		for _, i := range c.Images {
			if c.Before != nil && c.After != nil {
				l.images = append(l.images, fmt.Sprintf("%s %s: %s becomes %s%s", Span(c.Object.String()), Span(i.Container), Span(i.Before), Span(i.After), in))
			}
		}
	}
}

func writeList(b *bytes.Buffer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if title != "" {
		b.WriteString("**" + title + "**\n\n")
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines:mostLines], fmt.Sprintf("and %d more", len(lines)-mostLines))
	}
	b.WriteString("* " + strings.Join(lines, "\n* ") + "\n\n")
}

// plainDetail returns the section of a change.
func plainDetail(c diff.Change, builds bool) string {
	text := "#### " + Span(c.Object.String()) + " " + verdict(c) + "\n\n"
	for _, note := range c.Notes {
		text += Span(note) + "\n\n"
	}
	if body := unified(c, builds); body != "" && c.Action != diff.Encrypted {
		text += Fenced("diff", body) + "\n\n"
	}
	return text
}

// Span returns a text on one line as code, in which nothing has a meaning. The
// character that ends code is replaced.
func Span(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(short(s), "`", "'"))
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Fenced returns lines as a block of code in a language, "" for none.
func Fenced(language, body string) string {
	// The fence must be longer than any in the text.
	fence := "```"
	for strings.Contains(body, fence) {
		fence += "`"
	}
	return fence + language + "\n" + body + fence
}
