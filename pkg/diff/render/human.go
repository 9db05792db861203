// Package render writes the results of a diff as text, unified diff, JSON, Markdown for a pull
// request, or HTML.
package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

// Style configures how text is painted. The zero value paints nothing, as for a pipe.
type Style struct {
	// Paint colors a text by the operation it describes; the operation of a heading is empty. It
	// may be nil.
	Paint func(op diff.Op, text string) string
	// Comparison is shown in comments and pages.
	Comparison Comparison
}

// Comparison describes two revisions of a repository that were compared. The zero value is not shown.
type Comparison struct {
	// Base and Head are the revisions, and Paths the directories of the clusters.
	Base, Head string
	Paths      []string
	// At is the time of the comparison. Comments do not show it, so that they are the same for the same changes.
	At time.Time
}

// text returns a line with the compared revisions and the clusters, formatted by name.
func (c Comparison) text(name func(string) string) string {
	if c.Base == "" {
		return ""
	}
	paths := make([]string, len(c.Paths))
	for i, path := range c.Paths {
		paths[i] = name(path)
	}
	return strings.Join(paths, ", ") + ": " + name(c.Head) + " compared with " + name(c.Base)
}

// dated returns that line with the time of the comparison.
func (c Comparison) dated() string {
	if c.Base == "" {
		return ""
	}
	return c.text(printable.Line) + ", " + c.At.UTC().Format("2006-01-02 15:04 UTC")
}

// footer returns the end of a comment.
func (c Comparison) footer() string {
	if c.Base == "" {
		return ""
	}
	return "\n" + c.text(Span) + "\n"
}

func (s Style) paint(op diff.Op, text string) string {
	if s.Paint == nil {
		return text
	}
	return s.Paint(op, text)
}

// words holds the texts for the actions. An action without a text is not printed: the object does not change, or
// the action is an error.
var words = map[diff.Action]string{
	diff.Created:   "created",
	diff.Changed:   "changed",
	diff.Recreated: "recreated",
	diff.Pruned:    "deleted",
	diff.Encrypted: "encrypted, cannot compare",
	diff.Unstable:  "unstable",
	diff.Blocked:   "blocked",
}

// word returns the text for a change. An object that differs from what was applied has drifted.
func word(r *diff.Result, c diff.Change) string {
	if r.Drifted(c) {
		return "drifted"
	}
	return words[c.Action]
}

// Human returns each change as a line, followed by the fields that differ, and a line with the
// totals. It returns nothing if there are no changes.
func Human(results []*diff.Result, s Style) string {
	text := bySection(results, s, human)
	if text != "" {
		text += s.paint("", totals(results)) + "\n"
	}
	return text
}

// bySection returns the output of write for each section, below its title and followed by an empty line.
func bySection(results []*diff.Result, s Style, write func(*strings.Builder, []*diff.Result, Style)) string {
	var b strings.Builder
	for _, section := range Sections(results) {
		var part strings.Builder
		write(&part, section.Results, s)
		text, title := part.String(), section.Title()
		if text != "" && title != "" {
			title = s.paint("", title) + "\n"
			if !strings.HasSuffix(text, "\n\n") {
				text += "\n"
			}
			b.WriteString(title)
		}
		b.WriteString(text)
	}
	return b.String()
}

func human(b *strings.Builder, results []*diff.Result, s Style) {
	for _, r := range results {
		for _, c := range r.Changes {
			_, ok := words[c.Action]
			said := word(r, c)
			if c.Left() {
				said, ok = left(c), true
			}
			if c.Action == diff.Failed && c.Before != nil {
				said, ok = "cannot be applied", true // the caller prints the error
			}
			if ok {
				humanChange(b, c, said, s)
			}
		}
		if r.NotCompared != nil {
			fmt.Fprintf(b, "► %s %s\n", printable.Line(r.Owner.String()), s.paint(diff.Replaced, omission(r)))
		}
	}
}

// totals returns the number of objects for each action.
func totals(results []*diff.Result) string {
	s, drifted := Sum(results), 0
	for r, c := range diff.Each(results) {
		if r.Drifted(*c) {
			drifted++
		}
	}
	text := tally([]amount{
		{s.Created, "created"}, {s.Changed - drifted, "changed"}, {drifted, "drifted"}, {s.Recreated, "recreated"}, {s.Pruned, "deleted"},
		{s.Encrypted, "encrypted"}, {s.Blocked, "blocked"}, {s.Failed, "failing"}, {s.NotCorrected, "not corrected"},
		{s.Unstable, "unstable"}, {s.Ignored, "ignored"},
	})
	if all := clustersOf(results); len(all) > 0 && text != "" {
		text += fmt.Sprintf(" in %d of %d clusters", len(different(results)), len(all))
	}
	if s.NotCompared > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s, %d not compared", text, s.NotCompared), ", ")
	}
	return text
}

// amount is a number and the noun that it counts.
type amount struct {
	n    int
	what string
}

// tally returns the amounts that are not zero.
func tally(amounts []amount) string {
	var parts []string
	for _, a := range amounts {
		if a.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", a.n, a.what))
		}
	}
	return strings.Join(parts, ", ")
}

// omission returns the text for a result that was not compared.
func omission(r *diff.Result) string {
	return printable.Line("not compared: " + r.NotCompared.Reason)
}

// left returns the state of an object that differs and that the controller does not correct.
func left(c diff.Change) string {
	if c.Before == nil {
		return "missing, not corrected"
	}
	return "drifted, not corrected"
}

func humanChange(b *strings.Builder, c diff.Change, word string, s Style) {
	fmt.Fprintf(b, "► %s %s\n", printable.Line(c.Object.String()), s.paint(opOf(c.Action), word))
	for _, note := range c.Notes {
		fmt.Fprintf(b, "  %s\n", printable.Line(note))
	}
	if len(c.Fields) == 0 {
		return
	}
	for _, g := range grouped(c.Fields) {
		b.WriteString("\n")
		g.write(b, s)
	}
	b.WriteString("\n")
}

func opOf(a diff.Action) diff.Op {
	switch a {
	case diff.Created:
		return diff.Added
	case diff.Pruned:
		return diff.Removed
	default:
		return diff.Replaced
	}
}

// block is the text for one path: a single field, or the entries removed from and added to one map
// or list.
type block struct {
	path           string
	inList         bool
	single         *diff.Field
	removed, added []diff.Field
}

func grouped(fields []diff.Field) []*block {
	var blocks []*block
	type list struct {
		path   string
		inList bool
	}
	known := map[list]*block{}
	for _, f := range fields {
		if f.Op == diff.Replaced || f.Op == diff.Reordered {
			blocks = append(blocks, &block{path: f.Path, single: &f})
			continue
		}
		at := list{f.Parent, f.InList}
		g := known[at]
		if g == nil {
			g = &block{path: f.Parent, inList: f.InList}
			known[at] = g
			blocks = append(blocks, g)
		}
		if f.Op == diff.Removed {
			g.removed = append(g.removed, f)
		} else {
			g.added = append(g.added, f)
		}
	}
	return blocks
}

func (g *block) write(b *strings.Builder, s Style) {
	path := g.path
	if path == "" {
		path = "(root level)"
	}
	fmt.Fprintf(b, "%s%s\n", s.paint("", printable.Line(path)), g.owners())
	switch {
	case g.single == nil:
		g.entries(b, "-", "removed", diff.Removed, g.removed, s)
		g.entries(b, "+", "added", diff.Added, g.added, s)
	case g.single.Op == diff.Reordered:
		fmt.Fprintln(b, s.paint(diff.Replaced, "⇆ order changed"))
		sided(b, "- ", diff.Removed, inYAML(g.single.Before), s)
		sided(b, "+ ", diff.Added, inYAML(g.single.After), s)
	default:
		replaced(b, *g.single, s)
	}
}

// owners returns the field managers that own the fields of the block, each once, in parentheses.
func (g *block) owners() string {
	fields := slices.Concat(g.removed, g.added)
	if g.single != nil {
		fields = []diff.Field{*g.single}
	}
	var all []string
	for _, f := range fields {
		for _, owner := range f.Owners {
			text := strings.TrimSuffix(owner.Manager+" "+owner.Subresource, " ")
			if owner.At != nil {
				text += " " + owner.At.Format(time.RFC3339)
			}
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return printable.Line("  (" + strings.Join(all, ", ") + ")")
}

// entries writes a line such as "+ two map entries added:" and the entries.
func (g *block) entries(b *strings.Builder, sign, done string, op diff.Op, fields []diff.Field, s Style) {
	if len(fields) == 0 {
		return
	}
	what, many := "map entry", "map entries"
	if g.inList {
		what, many = "list entry", "list entries"
	}
	if len(fields) > 1 {
		what = many
	}
	fmt.Fprintln(b, s.paint(op, fmt.Sprintf("%s %s %s %s:", sign, number(len(fields)), what, done)))
	for _, line := range strings.Split(strings.TrimRight(printable.Value(g.yaml(fields)), "\n"), "\n") {
		fmt.Fprintf(b, "  %s\n", s.paint(op, line))
	}
}

func number(n int) string {
	names := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	if n < len(names) {
		return names[n]
	}
	return fmt.Sprint(n)
}

func (g *block) yaml(fields []diff.Field) string {
	value := func(f diff.Field) any {
		if f.Op == diff.Removed {
			return f.Before
		}
		return f.After
	}
	if g.inList {
		var list []any
		for _, f := range fields {
			list = append(list, value(f))
		}
		return inYAML(list)
	}
	m := map[string]any{}
	for _, f := range fields {
		m[f.Key] = value(f)
	}
	return inYAML(m)
}

func replaced(b *strings.Builder, f diff.Field, s Style) {
	before, after := inYAML(f.Before), inYAML(f.After)
	x, xText := f.Before.(string)
	y, yText := f.After.(string)
	switch {
	case xText && yText && strings.Contains(x+y, "\n"):
		fmt.Fprintln(b, s.paint(diff.Replaced, "± value change in multiline text"))
		for _, line := range hunks(x, y) {
			line = printable.Value(line)
			op := diff.Op("")
			switch line[0] {
			case '+':
				op = diff.Added
			case '-':
				op = diff.Removed
			}
			if op != "" {
				line = s.paint(op, line)
			}
			fmt.Fprintf(b, "  %s\n", line)
		}
		return
	case kindOf(f.Before) != kindOf(f.After):
		fmt.Fprintln(b, s.paint(diff.Replaced, fmt.Sprintf("± type change from %s to %s", kindOf(f.Before), kindOf(f.After))))
	default:
		fmt.Fprintln(b, s.paint(diff.Replaced, "± value change"))
	}
	if xText {
		before = x
	}
	if yText {
		after = y
	}
	sided(b, "- ", diff.Removed, before, s)
	sided(b, "+ ", diff.Added, after, s)
}

func sided(b *strings.Builder, sign string, op diff.Op, text string, s Style) {
	for _, line := range strings.Split(strings.TrimRight(printable.Value(text), "\n"), "\n") {
		fmt.Fprintln(b, s.paint(op, sign+line))
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "bool"
	case int64, int:
		return "int"
	case float64:
		return "float"
	case []any:
		return "list"
	default:
		return "map"
	}
}

func inYAML(v any) string {
	data, err := output.YAML(v)
	if err != nil { // cannot fail for values decoded from JSON
		return fmt.Sprint(v)
	}
	return string(data)
}
