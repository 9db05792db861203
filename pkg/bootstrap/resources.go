package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
)

func newKustomization() []byte {
	return []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " +
		componentsFile + "\n- " + syncFile + "\n")
}

// addResources adds files to the resources of a kustomization that does not
// list them. It only adds lines, so that the user's comments, order and layout
// are kept.
func addResources(text []byte, names ...string) ([]byte, error) {
	var document yaml.Node
	if err := budget.YAML("", text); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) == 0 {
		return slices.Concat(text, ending(text), newKustomization()), nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("not a kustomization: must be a mapping")
	}
	list := field(root, "resources")
	var missing []string
	for _, name := range names {
		if list == nil || !slices.ContainsFunc(list.Content, func(n *yaml.Node) bool { return strings.TrimPrefix(n.Value, "./") == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return text, nil
	}
	edited := insert(text, list, missing)
	if addsOnly(text, edited, missing) {
		return edited, nil
	}
	return rewrite(&document, root, list, missing)
}

// insert adds lines at the end of the list. It returns nil for a list on one
// line.
func insert(text []byte, list *yaml.Node, names []string) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	indent, at := 0, len(lines)
	var added bytes.Buffer
	switch {
	case list == nil:
		added.WriteString("resources:\n")
	case len(list.Content) > 0 && list.Style&yaml.FlowStyle == 0:
		indent, at = list.Column-1, list.Content[len(list.Content)-1].Line
	default:
		return nil
	}
	for _, name := range names {
		fmt.Fprintf(&added, "%s- %s\n", strings.Repeat(" ", indent), name)
	}
	before := bytes.Join(lines[:at], nil)
	return slices.Concat(before, ending(before), added.Bytes(), bytes.Join(lines[at:], nil))
}

// ending returns a newline if the last line of a text does not end with one.
func ending(text []byte) []byte {
	if len(text) == 0 || bytes.HasSuffix(text, []byte("\n")) {
		return nil
	}
	return []byte("\n")
}

// addsOnly reports whether an edit only adds the new resources.
func addsOnly(before, after []byte, names []string) bool {
	var was, is map[string]any
	if yaml.Unmarshal(before, &was) != nil || yaml.Unmarshal(after, &is) != nil || is == nil {
		return false
	}
	had, _ := was["resources"].([]any)
	wanted := slices.Clone(had)
	for _, name := range names {
		wanted = append(wanted, name)
	}
	was["resources"] = wanted
	return reflect.DeepEqual(was, is)
}

// rewrite adds to the list by encoding the whole document. Comments are kept;
// blank lines and indentation may change.
func rewrite(document, root, list *yaml.Node, names []string) ([]byte, error) {
	if list == nil || list.Kind != yaml.SequenceNode {
		fresh := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if list == nil {
			root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "resources"}, fresh)
			list = fresh
		} else if list.Tag == "!!null" {
			*list = *fresh
		} else {
			return nil, errors.New(".resources is not a list")
		}
	}
	if len(list.Content) == 0 {
		list.Style = 0
	}
	for _, name := range names {
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name})
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(document)
	return out.Bytes(), errors.Join(err, encoder.Close())
}

func field(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}
