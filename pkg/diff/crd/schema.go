package crd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Schema is the structural schema of a version of a CRD. It validates objects whose CRD the server
// does not serve yet.
type Schema map[string]any

// alwaysThere lists the fields of every object, which a schema need not declare.
var alwaysThere = []string{"apiVersion", "kind", "metadata"}

// Undeclared returns the fields of an object that its schema does not declare. The server rejects
// such an object.
func (s Schema) Undeclared(object map[string]any) []string {
	var found []string
	s.examine(object, func(path, problem string) {
		if problem == NotDeclared {
			found = append(found, path)
		}
	})
	return found
}

// Invalid returns the violations of the schema: missing fields, wrong types and values that are
// not in an enum. The server may find more, never fewer.
func (s Schema) Invalid(object map[string]any) []string {
	var found []string
	s.examine(object, func(path, problem string) { found = append(found, path+": "+problem) })
	return found
}

func (s Schema) examine(object map[string]any, report func(path, problem string)) {
	if s == nil {
		return
	}
	own := maps.Clone(object)
	for _, field := range alwaysThere {
		delete(own, field)
	}
	s.walk(own, "", report)
}

// NotDeclared is the violation of a field that the schema does not declare.
const NotDeclared = "field not declared in schema"

func (s Schema) at(keys ...string) Schema {
	for _, key := range keys {
		below, _ := s[key].(map[string]any)
		s = below
	}
	return s
}

func (s Schema) walk(value any, path string, report func(path, problem string)) {
	if value == nil || s == nil || s["x-kubernetes-embedded-resource"] == true {
		return // null means not set
	}
	if !s.fits(value) {
		report(path, fmt.Sprintf("must be of type %v", s["type"]))
		return
	}
	if allowed, ok := s["enum"].([]any); ok && !slices.ContainsFunc(allowed, func(a any) bool { return reflect.DeepEqual(a, value) }) {
		report(path, fmt.Sprintf("must be one of %v", allowed))
	}
	switch value := value.(type) {
	case map[string]any:
		s.walkMap(value, path, report)
	case []any:
		for i, element := range value {
			s.at("items").walk(element, fmt.Sprintf("%s[%d]", path, i), report)
		}
	}
}

func (s Schema) walkMap(value map[string]any, path string, report func(path, problem string)) {
	properties := s.at("properties")
	additional := s.at("additionalProperties")
	open := additional != nil || s["additionalProperties"] == true || s["x-kubernetes-preserve-unknown-fields"] == true || properties == nil && s["type"] != "object"
	for _, key := range slices.Sorted(maps.Keys(value)) {
		declared, known := properties[key].(map[string]any)
		switch {
		case known:
			Schema(declared).walk(value[key], path+"."+key, report)
		case additional != nil:
			additional.walk(value[key], path+"."+key, report)
		case !open:
			report(path+"."+key, NotDeclared)
		}
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		key, _ := name.(string)
		_, standard := properties.at(key)["default"]
		if value[key] == nil && !standard {
			report(path+"."+key, "required")
		}
	}
}

// fits reports whether a value has the type of the schema.
func (s Schema) fits(value any) bool {
	if s["x-kubernetes-int-or-string"] == true {
		return true
	}
	switch s["type"] {
	case "object":
		_, ok := value.(map[string]any)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "string":
		_, ok := value.(string)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "integer":
		f, ok := value.(float64)
		_, whole := value.(int64)
		return whole || ok && f == float64(int64(f))
	case "number":
		_, ok := value.(float64)
		_, whole := value.(int64)
		return whole || ok
	}
	return true
}
