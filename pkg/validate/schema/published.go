package schema

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

const (
	// publishedNodes and publishedDepth bound a JSON schema after its references were replaced.
	publishedNodes, publishedDepth = 200_000, 200
	preserve                       = "x-kubernetes-preserve-unknown-fields"
	intOrString                    = "x-kubernetes-int-or-string"
)

// compiled is a compiled JSON schema, or why it cannot be used.
type compiled struct {
	*version
	err error
}

// published validates an object with a JSON schema, which does not define the scope.
func (c *cluster) published(ctx context.Context, o *unstructured.Unstructured, text json.RawMessage) verdict.Verdict {
	key := sha256.Sum256(text)
	if _, ok := c.compiled[key]; !ok {
		v, err := compilePublished(text)
		c.compiled[key] = compiled{v, err}
	}
	v := c.compiled[key]
	if v.err != nil {
		return verdict.Verdict{Unknown: v.err.Error()}
	}
	return verdict.Verdict{Problems: append(c.metadata(o, o.GetNamespace() != ""), v.validate(ctx, o)...)}
}

// compilePublished compiles a JSON schema like the schema of a CustomResourceDefinition version.
func compilePublished(text json.RawMessage) (*version, error) {
	var document map[string]any
	if err := utiljson.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("not a JSON schema: %w", err)
	}
	r := &reader{document: document}
	converted, err := r.schema(document, 0)
	if err != nil {
		return nil, err
	}
	root, _ := converted.(map[string]any)
	if document[preserve] != true && root["properties"] == nil && root["allOf"] == nil && root["anyOf"] == nil && root["oneOf"] == nil {
		return nil, errors.New("not a JSON schema: it has no properties")
	}
	if root["properties"] != nil && document[preserve] != true && document["additionalProperties"] != true {
		delete(root, preserve) // an API server supports no other fields at the root, even if the schema allows them
	}
	if required, ok := root["required"].([]any); ok { // the cluster sets the status
		root["required"] = slices.DeleteFunc(required, func(name any) bool { return name == "status" })
	}
	if text, err = json.Marshal(root); err != nil {
		return nil, err
	}
	var external apiextensionsv1.JSONSchemaProps
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(text, &external); errors.As(err, &mismatch) {
		return nil, fmt.Errorf("flux does not support this schema: %s as %s", mismatch.Value, mismatch.Field)
	} else if err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, err
	}
	return compile(&internal, true)
}

// reader reads a JSON schema. It resolves references, and converts JSON schemas into the form of CustomResourceDefinitions, in
// which undeclared fields are unknown.
type reader struct {
	document map[string]any
	nodes    int
	// combining is the number of combinations (such as allOf) around a schema, in which unknown fields are not reported.
	combining int
}

// unsupported lists the keywords whose conditions CustomResourceDefinitions cannot express. The API server's code rejects others,
// such as patternProperties. Unknown keywords have no effect.
func unsupported() []string {
	return []string{
		"if", "contains", "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems",
		"$dynamicRef", "$recursiveRef", "disallow", "extends",
	}
}

// schema converts a schema, which may be true or false. Decoding rejects other values.
func (r *reader) schema(value any, depth int) (any, error) {
	if r.nodes++; r.nodes > publishedNodes {
		return nil, budget.TooMany("", "the schema", "nodes", publishedNodes)
	}
	if depth > publishedDepth {
		return nil, fmt.Errorf("the schema is nested more than %d levels deep, or refers to itself", publishedDepth)
	}
	from, ok := value.(map[string]any)
	switch {
	case value == true:
		return map[string]any{preserve: true}, nil
	case value == false:
		return map[string]any{preserve: true, "not": map[string]any{}}, nil
	case !ok:
		return value, nil
	case from["$ref"] != nil: // draft 4 ignores all other keywords next to $ref
		target, err := r.find(fmt.Sprint(from["$ref"]))
		if err != nil {
			return nil, err
		}
		return r.schema(target, depth+1)
	}
	to := map[string]any{}
	for keyword, value := range from {
		var err error
		switch keyword {
		case "$schema", "$id", "id", "definitions", "description", "title", "example", "externalDocs", preserve:
			continue
		case "const":
			keyword, value = "enum", []any{value}
		case "pattern":
			if _, err = regexp.Compile(fmt.Sprint(value)); err != nil {
				err = fmt.Errorf("flux does not support this schema: %w", err)
			}
		case "items":
			value, err = r.schema(value, depth+1)
		case "properties":
			value, err = r.each(value, depth)
		case "allOf", "anyOf", "oneOf", "not":
			r.combining++
			if keyword == "not" {
				value, err = r.schema(value, depth+1)
			} else {
				value, err = r.each(value, depth)
			}
			r.combining--
		case "additionalProperties":
			if _, bounded := value.(map[string]any); bounded {
				value, err = r.schema(value, depth+1)
			} else if r.combining == 0 {
				continue
			}
		}
		if err == nil && slices.Contains(unsupported(), keyword) {
			err = fmt.Errorf("flux does not support this schema: keyword %s", keyword)
		}
		if err != nil {
			return nil, err
		}
		to[keyword] = value
	}
	setType(to, from)
	open(to, from)
	return to, nil
}

// find returns the target of a reference in the same document.
func (r *reader) find(reference string) (any, error) {
	pointer, local := strings.CutPrefix(reference, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("the schema refers to another document: %s", reference)
	}
	var at any = r.document
	for step := range strings.SplitSeq(pointer, "/") {
		if step == "" {
			continue
		}
		in, _ := at.(map[string]any)
		if at = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; at == nil {
			return nil, fmt.Errorf("the schema refers to %s, which it does not contain", reference)
		}
	}
	return at, nil
}

// each converts the schemas in a list or a map.
func (r *reader) each(value any, depth int) (_ any, err error) {
	switch from := value.(type) {
	case []any:
		to := make([]any, len(from))
		for i := range from {
			if to[i], err = r.schema(from[i], depth+1); err != nil {
				return nil, err
			}
		}
		return to, nil
	case map[string]any:
		to := make(map[string]any, len(from))
		for name := range from {
			if to[name], err = r.schema(from[name], depth+1); err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	return value, nil // decoding rejects it
}

// setType converts the types. A CustomResourceDefinition supports one type, which may be nullable, or the combination
// of integer and string.
func setType(to, from map[string]any) {
	types, _ := from["type"].([]any)
	rest := slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
	if len(rest) == 1 {
		to["type"] = rest[0]
	}
	if len(rest) < len(types) {
		to["nullable"] = true
	}
	either := rest
	if choice, ok := from["oneOf"].([]any); ok && len(choice) == 2 { // written by tools for kubeconform
		for _, one := range choice {
			if s, _ := one.(map[string]any); len(s) == 1 {
				either = append(either, s["type"])
			}
		}
	}
	both := len(either) == 2 && slices.Contains(either, any("integer")) && slices.Contains(either, any("string"))
	if both || from["format"] == "int-or-string" {
		to[intOrString] = true
		delete(to, "format")
		delete(to, "oneOf")
		delete(to, "type")
	}
}

// open allows fields and elements that a schema does not declare, unless it excludes them.
func open(to, from map[string]any) {
	kind, typed := to["type"].(string)
	if from[preserve] == true || to["additionalProperties"] == nil && from["additionalProperties"] != false && (!typed || kind == "object") {
		to[preserve] = true
	}
	if to["items"] == nil && (!typed || kind == "array") {
		to["items"] = map[string]any{preserve: true}
	}
}
