package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// mostLines is the maximum number of lines of each list in a comment.
const mostLines = 50

// markup formats text from a repository so that a host does not interpret it as markup.
type markup struct {
	// text formats words, and code names and values.
	text, code func(string) string
	// heading formats the name and the action of a change, and end ends its details.
	heading func(object, action string) string
	end     string
	// leftOut is the format of the note about omitted details, with their number and the total number of details.
	leftOut string
}

// in returns the clusters of a section, to append to a line.
func (m markup) in(s Section) string {
	if s.In() == "" {
		return ""
	}
	return " " + m.text(strings.TrimSpace(s.In()))
}

// comment returns a comment: its head, and the details that fit into limit bytes. 0 means no limit.
func (m markup) comment(head string, results []*diff.Result, limit int) string {
	var details []titled
	for _, section := range Sections(results) {
		for r, c := range section.Changes() {
			if c.Different() {
				excerpt := func(most int) string { return m.detail(*c, r.Builds, most) }
				details = append(details, titled{m.text(section.Title()), excerpt(0), excerpt})
			}
		}
	}
	full := head + joined(details)
	if limit > 0 && len(full) > limit {
		full = shortened(head, details, limit, m.leftOut)
	}
	return full
}

// detail returns the details of a change. It truncates the diff to the given number of bytes; 0 means no limit. builds is
// diff.Result.Builds.
func (m markup) detail(c diff.Change, builds bool, most int) string {
	text := m.heading(c.Object.String(), verdict(c)) + "\n\n"
	for _, note := range c.Notes {
		text += m.text(note) + "\n\n"
	}
	if body := unified(c, builds); body != "" && c.Action != diff.Encrypted {
		if most > 0 && len(body) > most {
			body = excerpt(body, most)
		}
		text += Fenced("diff", body) + "\n\n"
	}
	return text + m.end
}

// excerpt returns the first lines of a text that fit into the given number of bytes, or the beginning of the first line,
// followed by the number of omitted lines.
func excerpt(body string, most int) string {
	kept := body[:strings.LastIndexByte(cutAt(body, most), '\n')+1]
	rest := body[len(kept):]
	if kept == "" {
		kept = cutAt(body, most) + "…\n"
		_, rest, _ = strings.Cut(body, "\n")
	}
	if left := strings.Count(rest, "\n"); left > 0 {
		kept += fmt.Sprintf("… lines omitted: %d\n", left)
	}
	return kept
}

// omissions returns a line for each result that was not compared.
func (m markup) omissions(results []*diff.Result) []string {
	var lines []string
	for _, section := range Sections(results) {
		for _, r := range section.Results {
			if r.NotCompared != nil {
				lines = append(lines, m.code(r.Owner.String())+": "+m.text(r.NotCompared.Reason)+m.in(section))
			}
		}
	}
	return lines
}

// dangers returns a line for each warning, failure, danger, and image that is missing or unknown: failures first, then
// dangers in the order of the rules.
func (m markup) dangers(results []*diff.Result) []string {
	lines := map[int][]string{}
	for _, section := range Sections(results) {
		add := func(at int, parts ...string) { lines[at] = append(lines[at], strings.Join(parts, " ")+m.in(section)) }
		for _, r := range section.Results {
			for _, w := range r.Warnings {
				add(warned, m.text(w))
			}
			for _, effect := range Effects(r.Dangers) {
				add(severity(r.Dangers), m.code(r.Owner.String()), m.text(effect))
			}
			for _, c := range r.Changes {
				object := m.code(c.Object.String())
				for _, text := range imageProblems(c) {
					add(failing, "✗", object, m.text(text))
				}
				if c.Action == diff.Failed {
					add(failing, "✗", object, "cannot be applied:", m.text(c.Reason))
				} else if len(c.Dangers) > 0 {
					add(severity(c.Dangers), object, m.text(strings.Join(Warnings(c), ", ")))
				}
			}
		}
	}
	var all []string
	for _, at := range slices.Sorted(maps.Keys(lines)) {
		all = append(all, lines[at]...)
	}
	return all
}

// The positions of failures and warnings, which come before dangers.
const failing, warned = -2, -1

// severity returns the position of the most severe of some dangers. Allowed dangers and notices come after all others.
func severity(dangers []diff.Danger) int {
	least := 2 * len(review.Rules())
	for _, d := range dangers {
		at := review.Position(d.Rule)
		if d.Allowed != "" || d.Notice {
			at += len(review.Rules())
		}
		least = min(least, at)
	}
	return least
}

// images formats a line for each changed image: the object, the container, and the old and the new image.
func (m markup) images(results []*diff.Result, format string) []string {
	var lines []string
	for _, section := range Sections(results) {
		for _, c := range section.Changes() {
			for _, i := range c.Images {
				if c.Before != nil && c.After != nil {
					lines = append(lines, fmt.Sprintf(format, m.code(c.Object.String())+m.in(section), m.code(i.Container), m.code(i.Before), m.code(i.After)))
				}
			}
		}
	}
	return lines
}

// list formats at most mostLines lines, followed by the number of the remaining lines.
func list(lines []string, format string) string {
	if more := len(lines) - mostLines; more > 0 {
		lines = append(slices.Clone(lines[:mostLines]), fmt.Sprintf("and %d more", more))
	}
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, format, line)
	}
	return b.String()
}

// titled is a text with the title of its section. The title is Markdown and may be empty.
type titled struct {
	title, text string
	// excerpt returns the text with a body of at most that many bytes.
	excerpt func(most int) string
}

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

// excerptMax is the maximum size of an excerpt of a body that does not fit into a comment. An excerpt is included only if more
// than excerptMin bytes are left.
const excerptMax, excerptMin = 8 << 10, 2 << 10

// shortened omits the texts that do not fit, and shortens those that are long.
func shortened(head string, details []titled, most int, leftOut string) string {
	room := most - len(head) - len(fmt.Sprintf(leftOut, len(details), len(details)))
	var kept []titled
	title := ""
	for _, d := range details {
		heading := 0
		if d.title != title {
			heading = len(subtitle(d.title))
		}
		if len(d.text)+heading > room && len(d.text) > excerptMax && room > excerptMin {
			const markup = 1 << 10 // the name of the object, notes and the fence
			d.text = d.excerpt(max(1, min(excerptMax, room-heading-markup)))
		}
		size := len(d.text) + heading
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

// Totals returns the totals of all results on one line.
func Totals(results []*diff.Result) string { return counted(Sum(results)) }

func counted(s Summary) string {
	return cmp.Or(tally([]amount{
		{s.Created, "created"}, {s.Changed, "changed"}, {s.Recreated, "recreated"}, {s.Pruned, "deleted"},
		{s.Encrypted, "encrypted"}, {s.Failed, "failing"}, {s.Blocked, "blocked"}, {s.Unstable, "unstable"}, {s.Ignored, "ignored"},
		{s.NotCompared, "not compared"}, {s.NotCorrected, "not corrected"},
	}), "no changes")
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
