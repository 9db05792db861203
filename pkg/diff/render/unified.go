package render

import (
	"bytes"
	"fmt"
	"strings"

	lines "github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

// Unified returns the changes as a unified diff of YAML, for patch tools and editors.
func Unified(results []*diff.Result, s Style) string {
	var b strings.Builder
	for _, section := range Sections(results) {
		var part strings.Builder
		for _, r := range section.Results {
			for _, c := range r.Changes {
				for line := range strings.Lines(unified(c, r.Builds)) {
					part.WriteString(painted(line, s))
				}
			}
			if r.NotCompared != nil {
				fmt.Fprintf(&part, "# %s %s\n", printable.Line(r.Owner.String()), omission(r))
			}
		}
		if title := section.Title(); title != "" && part.Len() > 0 { // patch tools skip lines before a header
			fmt.Fprintf(&b, "# %s\n", title)
		}
		b.WriteString(part.String())
	}
	return b.String()
}

func painted(line string, s Style) string {
	text, end := strings.CutSuffix(line, "\n")
	if op, headed := lineOp(text); op != "" || headed {
		text = s.paint(op, text)
	}
	if end {
		text += "\n"
	}
	return text
}

// lineOp returns the operation of a line of a unified diff, and reports whether it is a header.
func lineOp(line string) (op diff.Op, headed bool) {
	switch {
	case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "@@"):
		return "", true
	case strings.HasPrefix(line, "+"):
		return diff.Added, false
	case strings.HasPrefix(line, "-"):
		return diff.Removed, false
	}
	return "", false
}

// unified returns the diff of one object, or "" if there is nothing to show.
func unified(c diff.Change, builds bool) string {
	switch c.Action {
	case diff.Unstable:
		return ""
	case diff.Blocked:
		return fmt.Sprintf("# %s is blocked: %s\n", printable.Line(c.Object.String()), printable.Line(strings.Join(c.Notes, "; ")))
	}
	if _, shown := words[c.Action]; !shown && (c.Action != diff.Failed || c.Before == nil) {
		return ""
	}
	name := c.Object.Kind + "/" + c.Object.Name
	if c.Object.Namespace != "" {
		name = c.Object.Namespace + "/" + name
	}
	name = printable.Line(name)
	before, after := "live/"+name, "new/"+name
	if builds {
		before = "old/" + name
	}
	old, young := manifest(c.Before), manifest(c.After)
	if len(old) == 0 {
		before = "/dev/null"
	}
	if len(young) == 0 {
		after = "/dev/null"
	}
	if c.Action == diff.Encrypted || bytes.Equal(old, young) {
		return fmt.Sprintf("Objects %s and %s differ: %s\n", before, after, printable.Line(strings.Join(append([]string{words[c.Action]}, c.Notes...), "; ")))
	}
	remark := ""
	for _, note := range c.Notes {
		if strings.HasPrefix(note, diff.DerivedNote) {
			remark = "# " + name + ": " + printable.Line(note) + "\n"
		}
	}
	body := lines.Diff(before, old, after, young)
	// The first line contains a diff command; omit it.
	if _, rest, ok := bytes.Cut(body, []byte("\n")); ok && bytes.HasPrefix(body, []byte("diff ")) {
		body = rest
	}
	return remark + printable.Value(string(body))
}

func manifest(u *unstructured.Unstructured) []byte {
	if u == nil {
		return nil
	}
	return []byte(inYAML(u.Object))
}

// hunks returns the lines of a diff of two texts, without the heading.
func hunks(before, after string) []string {
	ended := func(s string) []byte {
		if s != "" && !strings.HasSuffix(s, "\n") {
			s += "\n"
		}
		return []byte(s)
	}
	body := string(lines.Diff("a", ended(before), "b", ended(after)))
	var shown []string
	for i, line := range strings.Split(strings.TrimRight(body, "\n"), "\n") {
		if i > 2 && line != "" {
			shown = append(shown, line)
		}
	}
	if len(shown) == 0 { // the texts differ only in the final line break
		shown = append(shown, "± line break at the end")
	}
	return shown
}
