package controllers

import (
	"strconv"
	"strings"
)

// Object is a decoded Kubernetes object, as encoding/json returns it.
type Object = map[string]any

// Path locates a field: names separated by dots, "[N]" for an element of a
// list, and a trailing "[]" for all elements. The first entry is the field in
// the current API version. The others are the fields of older versions, tried
// in order.
type Path []string

// Lookup returns the value of the first entry that the object has.
func (p Path) Lookup(o Object) (any, bool) {
	for _, field := range p {
		if v, ok := lookup(o, field); ok {
			return v, true
		}
	}
	return nil, false
}

// String returns the field as a string, or "" if it is missing or not a scalar.
func (p Path) String(o Object) string {
	v, _ := p.Lookup(o)
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

// Strings returns the strings of a list. It skips elements of other types.
func (p Path) Strings(o Object) []string {
	v, _ := p.Lookup(o)
	list, _ := v.([]any)
	var found []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

func lookup(o Object, field string) (any, bool) {
	var cur any = o
	for step := range strings.SplitSeq(field, ".") {
		name, index, indexed := cutIndex(step)
		m, ok := cur.(map[string]any)
		if !ok {
			return nil, false
		}
		if cur, ok = m[name]; !ok || cur == nil {
			return nil, false
		}
		if !indexed {
			continue
		}
		list, ok := cur.([]any)
		if !ok || index >= len(list) {
			return nil, false
		}
		cur = list[index]
	}
	return cur, true
}

// cutIndex splits "history[0]" into name and index. "dependsOn[]" is the whole
// list and has no index.
func cutIndex(step string) (name string, index int, indexed bool) {
	name, rest, found := strings.Cut(step, "[")
	if !found {
		return name, 0, false
	}
	index, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return name, index, err == nil
}

// Name returns metadata.name.
func Name(o Object) string { return Path{"metadata.name"}.String(o) }

// Namespace returns metadata.namespace, or "" for cluster-scoped objects.
func Namespace(o Object) string { return Path{"metadata.namespace"}.String(o) }

// Lists reports whether an annotation with values that are separated by commas contains a value.
func Lists(o Object, key, value string) bool {
	for listed := range strings.SplitSeq(Annotation(o, key), ",") {
		if strings.TrimSpace(listed) == value {
			return true
		}
	}
	return false
}

// Annotation returns the value of an annotation. Since keys contain dots and slashes, a Path cannot
// select an annotation.
func Annotation(o Object, key string) string {
	v, _ := Path{"metadata.annotations"}.Lookup(o)
	m, _ := v.(map[string]any)
	s, _ := m[key].(string)
	return s
}
