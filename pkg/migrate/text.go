package migrate

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Change is a line with an outdated version.
type Change struct {
	Line int    `json:"line"`
	Kind string `json:"kind"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Text is the migrated content of a file.
type Text struct {
	Content string
	Changes []Change
	// Unclear lists the numbers of lines with a version that is no longer served and a kind that
	// cannot be determined.
	Unclear []int
	// Fields lists the fields that do not exist in the newer versions.
	Fields []Field
	// patches lists the files with patches to which the text refers.
	patches []patchFile
}

// Blocked reports whether a field must be converted manually before the versions are changed.
func (t Text) Blocked() bool {
	return slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Blocked })
}

var (
	// entry matches a key of a mapping with a plain value. Matching lines instead
	// of documents reaches templates and patches in strings and keeps the rest of
	// the file, such as comments, unchanged.
	entry = lazy.Regexp(`^( *(?:- +)*)["']?(apiVersion|kind|group|version)["']?:[ \t]+["']?([A-Za-z0-9./-]+)["']?,?[ \t]*(?:#.*)?\r?$`)
	named = lazy.Regexp(`\b([a-z]+\.(?:toolkit|extensions)\.fluxcd\.io)/(v[0-9]+(?:(?:alpha|beta)[0-9]+)?)\b`)
)

// Rewrite updates the versions of Flux kinds in a text to the versions of a release: apiVersion
// next to a kind, and group, version and kind in selectors. It converts the fields that do not
// exist in the newer versions. It does not change a blocked text.
func Rewrite(ctx context.Context, text string, r Release) (Text, error) {
	lines := strings.SplitAfter(text, "\n")
	t := Text{Content: text}
	edits, fields, seen := map[int][]string{}, map[int][]string{}, map[[2]int]bool{}
	for i, line := range lines {
		if i%1000 == 0 && ctx.Err() != nil {
			return Text{}, context.Cause(ctx)
		}
		changed, c := rewriteLine(lines, i, r)
		if c == nil {
			if unclear(line, r) {
				t.Unclear = append(t.Unclear, i+1)
			}
			continue
		}
		edits[i] = []string{changed}
		t.Changes = append(t.Changes, *c)
		t.Fields = append(t.Fields, removedFields(lines, i, *c, fields, seen)...)
	}
	inPatches, files := patchesOf(text, r)
	t.Fields, t.patches = append(t.Fields, inPatches...), files
	maps.Copy(edits, fields)
	if t.Blocked() || len(edits) == 0 {
		return t, nil
	}
	var content strings.Builder
	for i, line := range lines {
		replaced, edited := edits[i]
		if !edited {
			replaced = []string{line}
		}
		for _, line := range replaced {
			content.WriteString(line)
		}
	}
	t.Content = content.String()
	return t, nil
}

// removedFields converts the fields that do not exist in the new version of an object, unless the
// object was already converted. at is the line at which the object starts.
func removedFields(lines []string, at int, c Change, edits map[int][]string, seen map[[2]int]bool) []Field {
	group, to, _ := strings.Cut(c.To, "/")
	_, from, _ := strings.Cut(c.From, "/")
	k, _ := controllers.KindOf(group, c.Kind)
	removed := k.RemovedBetween(from, to)
	if len(removed) == 0 {
		return nil
	}
	column, _, _ := position(lines[at])
	b := blockOf(lines, at, column, edits)
	if seen[[2]int{b.start, column}] {
		return nil
	}
	seen[[2]int{b.start, column}] = true
	return b.convert(c.Kind, removed)
}

// rewriteLine returns the migrated line and its change, if any.
func rewriteLine(lines []string, i int, r Release) (string, *Change) {
	line := lines[i]
	m := entry().FindStringSubmatchIndex(strings.TrimSuffix(line, "\n"))
	if m == nil {
		return line, nil
	}
	key, value := line[m[4]:m[5]], line[m[6]:m[7]]
	var group, from string
	switch key {
	case "apiVersion":
		group, from, _ = strings.Cut(value, "/")
	case "version":
		from = value
	default:
		return line, nil
	}
	beside := siblings(lines, i, m[3]-m[2])
	if key == "version" {
		group = beside["group"]
	}
	to, older := r.Target(group, beside["kind"], from)
	if !older {
		return line, nil
	}
	start := m[7] - len(from)
	return line[:start] + to + line[m[7]:], &Change{i + 1, beside["kind"], group + "/" + from, group + "/" + to}
}

// unclear reports whether an unchanged line contains a version that is no longer served.
func unclear(line string, r Release) bool {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return false
	}
	for _, m := range named().FindAllStringSubmatch(line, -1) {
		if r.outdated(m[1], m[2]) {
			return true
		}
	}
	return false
}
