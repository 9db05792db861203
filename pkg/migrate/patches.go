package migrate

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
)

// JSON patches (RFC 6902) contain no apiVersion: their target specifies the kind. They are not
// converted, since an operation may depend on those before it.

// patchFile is a file with patches to which a kustomization.yaml refers.
type patchFile struct {
	path string
	// removed lists the fields that do not exist in the targets of the patch.
	removed []removedField
}

// oldest is an API version that is not newer than any Flux API version.
const oldest = "v1alpha1"

// removedField is a field that does not exist in a release's version of a kind.
type removedField struct {
	kind string
	controllers.Removed
}

// patchesOf returns the fields in a text's JSON patches that no longer exist in a release's version
// of the targets, and the files with patches. It returns nothing for text that is not YAML, such as
// a template.
func patchesOf(text string, r Release) (fields []Field, files []patchFile) {
	if !strings.Contains(text, "target") {
		return nil, nil
	}
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		if documents.Decode(&document) != nil {
			return fields, files
		}
		eachMapping(&document, func(m *yaml.Node) {
			_, target := child(m, "target")
			removed := removedOf(target, r)
			if len(removed) == 0 {
				return
			}
			if _, patch := child(m, "patch"); patch != nil {
				fields = append(fields, inlineFields(patch, removed)...)
			}
			if _, path := child(m, "path"); path != nil && path.Kind == yaml.ScalarNode {
				files = append(files, patchFile{path.Value, removed})
			}
		})
	}
}

// eachMapping calls do for all mappings below a node. Aliases are not followed.
func eachMapping(n *yaml.Node, do func(*yaml.Node)) {
	if n.Kind == yaml.MappingNode {
		do(n)
	}
	for _, c := range n.Content {
		eachMapping(c, do)
	}
}

// removedOf returns the fields that no longer exist in a release's version of a patch's targets.
func removedOf(target *yaml.Node, r Release) []removedField {
	if target == nil {
		return nil
	}
	_, group := child(target, "group")
	_, kind := child(target, "kind")
	if group == nil && kind == nil {
		return nil // a name alone does not identify the kind
	}
	var all []removedField
	for _, k := range controllers.Kinds {
		if !matches(group, k.Group) || !matches(kind, k.Kind) {
			continue
		}
		to, _ := r.Target(k.Group, k.Kind, oldest)
		for _, removed := range k.RemovedBetween(oldest, to) {
			all = append(all, removedField{k.Kind, removed})
		}
	}
	return all
}

// matches reports whether a selector of a target, a regular expression as in kustomize, matches.
func matches(selector *yaml.Node, text string) bool {
	if selector == nil || selector.Value == "" {
		return true
	}
	expression, err := budget.Regexp("^(?:" + selector.Value + ")$")
	return err == nil && expression.MatchString(text)
}

// inlineFields returns the removed fields in a patch that is a text or a list in a file.
func inlineFields(patch *yaml.Node, removed []removedField) []Field {
	if patch.Kind == yaml.SequenceNode {
		return operationFields(patch, removed)
	}
	fields := textFields(patch.Value, removed)
	for i := range fields {
		if patch.Style&yaml.LiteralStyle != 0 {
			fields[i].Line += patch.Line
		} else {
			fields[i].Line = patch.Line
		}
	}
	return fields
}

// textFields returns the removed fields in the text of a patch. A strategic merge patch has none.
func textFields(text string, removed []removedField) []Field {
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) != nil || len(document.Content) == 0 {
		return nil
	}
	return operationFields(document.Content[0], removed)
}

// operationFields returns the removed fields in the operations of a JSON patch.
func operationFields(operations *yaml.Node, removed []removedField) []Field {
	if operations.Kind != yaml.SequenceNode {
		return nil
	}
	var fields []Field
	for _, operation := range operations.Content {
		for _, f := range removed {
			if at := f.in(operation); at > 0 {
				removal := controllers.Removal{Removed: f.Removed, Blocked: "change the JSON patch: " + f.ByHand()}
				fields = append(fields, Field{at, f.kind, removal.Outcome(), true})
			}
		}
	}
	return fields
}

// in returns the line at which an operation contains the field, or 0.
func (f removedField) in(operation *yaml.Node) int {
	pointer := "/spec/" + f.Field
	for _, name := range []string{"path", "from"} {
		_, value := child(operation, name)
		if value != nil && (value.Value == pointer || strings.HasPrefix(value.Value, pointer+"/")) {
			return value.Line
		}
	}
	_, path := child(operation, "path")
	if path == nil || path.Value != "/spec" {
		return 0
	}
	if _, spec := child(operation, "value"); spec != nil {
		if key, _ := child(spec, f.Field); key != nil {
			return key.Line
		}
	}
	return 0
}
