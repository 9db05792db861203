package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// shape is the structural schema of a definition's version. It is looked at
// where the server cannot: it does not know the definition yet.
type shape map[string]any

// alwaysThere are the fields that every object has without a schema saying so.
var alwaysThere = []string{"apiVersion", "kind", "metadata"}

// undeclared are the fields that an object has and its schema does not: the
// server refuses to apply these.
func (s shape) undeclared(object map[string]any) []string {
	var found []string
	s.examine(object, func(path, problem string) {
		if problem == notDeclared {
			found = append(found, path)
		}
	})
	return found
}

// invalid says what of an object does not fit: what is missing, of another
// type, or not among the values that are allowed. It is less than the server
// checks, and never more.
func (s shape) invalid(object map[string]any) []string {
	var found []string
	s.examine(object, func(path, problem string) { found = append(found, path+": "+problem) })
	return found
}

func (s shape) examine(object map[string]any, report func(path, problem string)) {
	if s == nil {
		return
	}
	own := maps.Clone(object)
	for _, field := range alwaysThere {
		delete(own, field)
	}
	s.walk(own, "", report)
}

const notDeclared = "field not declared in schema"

func (s shape) at(keys ...string) shape {
	for _, key := range keys {
		below, _ := s[key].(map[string]any)
		s = below
	}
	return s
}

func (s shape) walk(value any, path string, tell func(path, problem string)) {
	if value == nil || s == nil || s["x-kubernetes-embedded-resource"] == true {
		return // null means not set
	}
	if !s.fits(value) {
		tell(path, fmt.Sprintf("it has to be of type %v", s["type"]))
		return
	}
	if allowed, ok := s["enum"].([]any); ok && !slices.ContainsFunc(allowed, func(a any) bool { return reflect.DeepEqual(a, value) }) {
		tell(path, fmt.Sprintf("it has to be one of %v", allowed))
	}
	switch value := value.(type) {
	case map[string]any:
		s.walkMap(value, path, tell)
	case []any:
		for i, element := range value {
			s.at("items").walk(element, fmt.Sprintf("%s[%d]", path, i), tell)
		}
	}
}

func (s shape) walkMap(value map[string]any, path string, tell func(path, problem string)) {
	properties := s.at("properties")
	additional := s.at("additionalProperties")
	open := additional != nil || s["additionalProperties"] == true || s["x-kubernetes-preserve-unknown-fields"] == true || properties == nil && s["type"] != "object"
	for _, key := range slices.Sorted(maps.Keys(value)) {
		declared, known := properties[key].(map[string]any)
		switch {
		case known:
			shape(declared).walk(value[key], path+"."+key, tell)
		case additional != nil:
			additional.walk(value[key], path+"."+key, tell)
		case !open:
			tell(path+"."+key, notDeclared)
		}
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		key, _ := name.(string)
		_, standard := properties.at(key)["default"]
		if value[key] == nil && !standard {
			tell(path+"."+key, "it is required")
		}
	}
}

// fits tells whether a value is of the schema's type.
func (s shape) fits(value any) bool {
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
