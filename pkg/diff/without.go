package diff

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Without returns a change without the fields for which ignore returns true. It passes paths as in
// Field. A change without remaining fields becomes Ignored and keeps its dangers.
func (c Change) Without(ignore func(path string) bool) Change {
	if c.Action != Changed || c.Before == nil || c.After == nil {
		return c
	}
	n := 0
	after, _ := equalized("", c.Before.Object, c.After.Object, func(path string) bool {
		if !ignore(path) {
			return false
		}
		n++
		return true
	}).(map[string]any)
	if n == 0 {
		return c
	}
	c.IgnoredFields = n
	c.After = &unstructured.Unstructured{Object: after}
	c.Fields = Fields(Content(c.Before), Content(c.After))
	if len(c.Fields) == 0 {
		c.Action = Ignored
	}
	return c
}

// equalized returns a copy of after in which each differing field for which ignore returns true has
// the value of before.
func equalized(path string, before, after any, ignore func(path string) bool) any {
	old, isMap := before.(map[string]any)
	young, areMaps := after.(map[string]any)
	if !isMap || !areMaps {
		return equalizedList(path, before, after, ignore)
	}
	result := map[string]any{}
	for _, key := range keys(old, young) {
		was, wasSet := old[key]
		is, isSet := young[key]
		at := strings.TrimPrefix(path+"."+key, ".")
		switch {
		case apiequality.Semantic.DeepEqual(was, is):
		case ignore(at):
			is, isSet = was, wasSet
		default: // a missing map is equal to an empty one
			is = equalized(at, mapIfMissing(was, is), mapIfMissing(is, was), ignore)
			isSet = isSet || !empty(is)
		}
		if isSet {
			result[key] = is
		}
	}
	return result
}

// mapIfMissing returns v, or an empty map if v is missing and the other value is a map.
func mapIfMissing(v, other any) any {
	if _, isMap := other.(map[string]any); v == nil && isMap {
		return map[string]any{}
	}
	return v
}

// equalizedList is equalized for lists. It compares elements with the same name, or elements
// without a name at the same position. Other elements are not changed.
func equalizedList(path string, before, after any, ignore func(path string) bool) any {
	old, isList := before.([]any)
	young, areLists := after.([]any)
	if !isList || !areLists || len(old) != len(young) {
		return after
	}
	id := identifier(old, young)
	result := slices.Clone(young)
	for i := range young {
		if name := label(id, i, young[i]); name == label(id, i, old[i]) {
			result[i] = equalized(path+"."+name, old[i], young[i], ignore)
		}
	}
	return result
}
