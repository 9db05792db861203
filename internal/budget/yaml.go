package budget

import (
	"bytes"
	"errors"
	"io"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// The limits of a YAML document. A parser uses up to 300 bytes of memory for a node with two bytes of text.
const (
	maxNodes    = 2_000_000
	maxExpanded = 1_000_000
	maxText     = 64 << 20
	maxDepth    = 500
)

// YAML returns an error for documents that are nested too deeply, have too many
// nodes, or whose aliases expand too much. It accepts invalid YAML, which the
// decoder reports.
func YAML(name string, text []byte) error {
	s := scan(text)
	switch {
	case s.nodes > maxNodes:
		return exceeded(name, "the YAML has more than %d nodes", maxNodes)
	case s.depth > maxDepth:
		return exceeded(name, "the YAML is nested more than %d levels deep", maxDepth)
	case !s.aliases && s.brackets <= maxDepth:
		return nil
	}
	for decoder := goyaml.NewDecoder(bytes.NewReader(text)); ; {
		var document goyaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) || err != nil {
			return nil
		}
		if err := (&expansion{name: name, known: map[*goyaml.Node]weight{}}).check(&document); err != nil {
			return err
		}
	}
}

// Nodes returns an upper bound for the number of nodes in a YAML or JSON text, based on its separators.
func Nodes(text []byte) int64 { return scan(text).nodes }

// scanned holds the properties of a text that are determined without parsing it.
type scanned struct {
	nodes    int64
	aliases  bool
	brackets int64
	// depth is the maximum indentation in levels.
	depth int
}

func scan(text []byte) scanned {
	var s scanned
	anchors, aliases := false, false
	leading, levels := true, 0
	for _, c := range text {
		switch c {
		case '\n':
			s.nodes++
			leading, levels = true, 0
			continue
		case ',':
			s.nodes++
		case ':':
			s.nodes++
		case '[', '{':
			s.nodes++
			s.brackets++
		case '&':
			anchors = true
		case '*':
			aliases = true
		}
		if !leading {
			continue
		}
		switch c {
		case ' ':
		case '-', '?':
			s.nodes++ // "- - -" opens three sequences
			levels++
			s.depth = max(s.depth, levels)
		default:
			leading = false
		}
	}
	s.aliases = anchors && aliases
	return s
}

// weight is the size of a node with its aliases expanded.
type weight struct {
	nodes, text int64
	depth       int
}

type expansion struct {
	name  string
	known map[*goyaml.Node]weight
}

// open marks a node whose weight is being computed.
const open = -1

func (e *expansion) check(document *goyaml.Node) error {
	_, err := e.weigh(document, 0)
	return err
}

// weigh returns the weight of a node and its descendants. The weight of a node with an anchor is computed once, so
// that the time is linear in the length of the text.
func (e *expansion) weigh(node *goyaml.Node, at int) (weight, error) {
	if at > 2*maxDepth {
		return weight{}, exceeded(e.name, "the YAML is nested more than %d levels deep", maxDepth)
	}
	if node.Kind == goyaml.AliasNode {
		return e.weigh(node.Alias, at)
	}
	if w, ok := e.known[node]; ok {
		if w.depth == open {
			return w, exceeded(e.name, "the YAML anchor %q contains itself", node.Anchor)
		}
		return w, nil
	}
	if node.Anchor != "" {
		e.known[node] = weight{depth: open}
	}
	total := weight{nodes: 1, text: int64(len(node.Value) + len(node.HeadComment) + len(node.LineComment) + len(node.FootComment))}
	for _, child := range node.Content {
		w, err := e.weigh(child, at+1)
		if err != nil {
			return w, err
		}
		total.nodes += w.nodes
		total.text += w.text
		total.depth = max(total.depth, w.depth+1)
		switch {
		case total.nodes > maxExpanded:
			return w, exceeded(e.name, "the YAML aliases expand to more than %d nodes", maxExpanded)
		case total.text > maxText:
			return w, exceeded(e.name, "the YAML aliases expand to more than %s", Size(maxText))
		case total.depth > maxDepth:
			return w, exceeded(e.name, "the YAML is nested more than %d levels deep", maxDepth)
		}
	}
	if node.Anchor != "" {
		e.known[node] = total
	}
	return total, nil
}

// Unmarshal decodes YAML that is within the limits, like sigs.k8s.io/yaml.
func Unmarshal(name string, text []byte, into any) error {
	if err := YAML(name, text); err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}
