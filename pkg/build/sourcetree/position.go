package sourcetree

import (
	"bytes"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Document is a document of a YAML file with the lines of its fields.
type Document struct{ root *goyaml.Node }

// Positions returns the documents of a YAML file, up to the first that is invalid.
func Positions(text []byte) []Document {
	var all []Document
	for decoder := goyaml.NewDecoder(bytes.NewReader(text)); ; {
		var document goyaml.Node
		if decoder.Decode(&document) != nil {
			return all
		}
		if len(document.Content) == 1 && document.Content[0].Kind == goyaml.MappingNode {
			all = append(all, Document{document.Content[0]})
		}
	}
}

// ID returns the identity of the object in the document.
func (d Document) ID() controllers.ID {
	group, _, versioned := strings.Cut(d.text("apiVersion"), "/")
	if !versioned {
		group = ""
	}
	return controllers.ID{Group: group, Kind: d.text("kind"), Namespace: d.text("metadata.namespace"), Name: d.text("metadata.name")}
}

func (d Document) text(field string) string {
	text, _ := d.Text(field)
	return text
}

// Text returns the scalar value of a field, and false if the document does not contain it.
func (d Document) Text(field string) (text string, ok bool) {
	if _, value, rest := d.find(field); rest == "" && value.Kind == goyaml.ScalarNode {
		return value.Value, true
	}
	return "", false
}

// Line returns the line of a field such as spec.ports[0].port, or of its innermost part that the document contains. Whole
// is set if the document contains the field.
func (d Document) Line(field string) (line int, whole bool) {
	line, _, rest := d.find(field)
	return line, rest == ""
}

// find returns the line and the value of the innermost part of a field, and the rest of the field.
func (d Document) find(field string) (line int, value *goyaml.Node, rest string) {
	line, value, rest = d.root.Line, d.root, field
	for rest != "" {
		at, inner, left := step(value, rest)
		if inner == nil {
			break
		}
		line, value, rest = at, inner, left
	}
	return line, value, rest
}

// step returns the line and the value of the first part of a field in a node, or nil, and the rest of the field. Keys may
// contain dots: the longest key that the node contains is the first part.
func step(node *goyaml.Node, field string) (line int, value *goyaml.Node, rest string) {
	for node.Kind == goyaml.AliasNode {
		node = node.Alias
	}
	if node.Kind == goyaml.SequenceNode {
		index, rest, _ := strings.Cut(strings.TrimPrefix(field, "["), "]")
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i].Line, node.Content[i], strings.TrimPrefix(rest, ".")
		}
		return 0, nil, field
	}
	longest := -1
	for i := 0; node.Kind == goyaml.MappingNode && i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		left, ok := strings.CutPrefix(field, "["+key.Value+"]")
		if !ok {
			left, ok = strings.CutPrefix(field, key.Value)
			ok = ok && (left == "" || left[0] == '.' || left[0] == '[')
		}
		if ok && len(key.Value) > longest {
			longest, line, value, rest = len(key.Value), key.Line, node.Content[i+1], strings.TrimPrefix(left, ".")
		}
	}
	return line, value, rest
}
