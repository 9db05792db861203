package migrate

import (
	"cmp"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Field is a removed field of an object in a file: it does not exist in the newer version.
type Field struct {
	Line int    `json:"line"`
	Kind string `json:"kind"`
	// Outcome describes how the field was converted, or how to convert it manually.
	Outcome string `json:"outcome"`
	Blocked bool   `json:"blocked,omitempty"`
}

// blockMax is the maximum size of an object that is parsed. Alerts and Providers are much smaller.
const blockMax = 32 << 10

// block is the mapping of an object in a text.
type block struct {
	lines []string
	// start is the index of its first line, end the index after its last line.
	start, end int
	// edits maps the index of a line to its replacement lines.
	edits map[int][]string
}

// blockOf returns the mapping that contains a line with a key at a column.
func blockOf(lines []string, at, column int, edits map[int][]string) block {
	outside := func(i int) bool {
		indent, _, skip := position(lines[i])
		return !skip && indent < column || strings.HasPrefix(lines[i], "---")
	}
	b := block{lines: lines, start: at, end: at + 1, edits: edits}
	first := func(i int) bool {
		indent, item, skip := position(lines[i])
		return item && !skip && indent <= column
	}
	for b.start > 0 && !first(b.start) && !outside(b.start-1) {
		b.start--
	}
	for b.end < len(lines) && !first(b.end) && !outside(b.end) {
		b.end++
	}
	return b
}

// convert edits the removed fields of the object and returns them.
func (b block) convert(kind string, removed []controllers.Removed) []Field {
	text := strings.Join(b.lines[b.start:b.end], "")
	if len(text) > blockMax {
		return b.unread(kind, removed)
	}
	indent := lead(text)
	text = strings.Repeat(" ", len(indent)) + text[len(indent):]
	var document yaml.Node
	var object controllers.Object
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || document.Decode(&object) != nil {
		return b.unread(kind, removed)
	}
	_, spec := child(document.Content[0], "spec")
	var fields []Field
	for _, r := range removed {
		removal, found := r.Of(object)
		if !found {
			continue
		}
		line := b.start
		if spec != nil {
			if key, _ := child(spec, r.Field); key != nil {
				line += key.Line - 1
			}
		}
		if removal.Blocked == "" && !b.edit(spec, r) {
			removal.Blocked = "it cannot be converted automatically: " + r.ByHand()
		}
		fields = append(fields, Field{line + 1, kind, removal.Outcome(), removal.Blocked != ""})
	}
	return fields
}

// unread returns the removed fields that may be in an object that is not valid YAML, such as a
// template.
func (b block) unread(kind string, removed []controllers.Removed) []Field {
	var fields []Field
	for _, r := range removed {
		key := regexp.MustCompile(`(?:^|[\s{,"'])` + r.Field + `["']?\s*:`)
		for i := b.start; i < b.end; i++ {
			if key.MatchString(b.lines[i]) {
				removal := controllers.Removal{Removed: r, Blocked: "the object cannot be parsed: " + r.ByHand()}
				fields = append(fields, Field{i + 1, kind, removal.Outcome(), true})
			}
		}
	}
	return fields
}

// edit converts a field and reports whether it was converted. It converts only fields on a single
// line.
func (b block) edit(spec *yaml.Node, r controllers.Removed) bool {
	if spec == nil || spec.Style&yaml.FlowStyle != 0 {
		return false
	}
	key, value := child(spec, r.Field)
	if key == nil || value.Kind != yaml.ScalarNode || value.Anchor != "" || !b.alone(key, value) {
		return false
	}
	at := b.start + key.Line - 1
	if r.Moved == "" {
		b.edits[at] = []string{}
		return true
	}
	line := b.lines[at]
	end := line[len(strings.TrimRight(line, "\r\n")):]
	_, name := r.Parent()
	content := name + line[key.Column-1+keyWidth(line[key.Column-1:]):]
	return b.move(spec, r, at, key.Column-1, content, end)
}

// move moves the line of a field into another field of the spec, and adds that field if it is
// missing.
func (b block) move(spec *yaml.Node, r controllers.Removed, at, column int, content, end string) bool {
	parent, _ := r.Parent()
	key, value := child(spec, parent)
	if key == nil {
		indent := strings.Repeat(" ", column)
		b.edits[at] = []string{indent + parent + ":" + cmp.Or(end, "\n"), indent + "  " + content}
		return true
	}
	if value.Kind != yaml.MappingNode || value.Style&yaml.FlowStyle != 0 || len(value.Content) == 0 || value.Content[0].Line == key.Line {
		return false
	}
	first := b.start + value.Content[0].Line - 1
	if end == "" { // the last line of the file
		content += "\n"
	}
	b.edits[at] = []string{}
	b.edits[first] = []string{strings.Repeat(" ", value.Content[0].Column-1) + content, b.lines[first]}
	return true
}

// alone reports whether a line contains only the key and its value.
func (b block) alone(key, value *yaml.Node) bool {
	line := b.lines[b.start+key.Line-1]
	if strings.TrimSpace(line[:key.Column-1]) != "" {
		return false
	}
	var single yaml.Node
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(line)), &single); err != nil || len(single.Content) != 1 {
		return false
	}
	_, whole := child(single.Content[0], key.Value)
	return whole != nil && whole.Value == value.Value && whole.Style == value.Style
}

// keyWidth returns the length of the key at the start of a text, with its quotes.
func keyWidth(text string) int { return strings.IndexByte(text, ':') }

// child returns the nodes of a key of a mapping, or nil.
func child(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}
