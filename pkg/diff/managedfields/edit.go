package managedfields

import (
	"fmt"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Replace sets a field to its value in another object, or removes it if that object does not have it.
func Replace(v, from any, path fieldpath.Path) any {
	switch step := path[0]; {
	case step.FieldName != nil:
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		f, _ := from.(map[string]any)
		if len(path) > 1 {
			if below, ok := m[*step.FieldName]; ok {
				m[*step.FieldName] = Replace(below, f[*step.FieldName], path[1:])
			}
		} else if value, ok := f[*step.FieldName]; ok {
			m[*step.FieldName] = value
		} else {
			delete(m, *step.FieldName)
		}
		return m
	default:
		list, ok := v.([]any)
		if !ok {
			return v
		}
		f, _ := from.([]any)
		at := slices.IndexFunc(list, func(e any) bool { return isElement(e, step) })
		if at < 0 {
			return v
		}
		if len(path) == 1 {
			return slices.Concat(list[:at], list[at+1:])
		}
		var below any
		if i := slices.IndexFunc(f, func(e any) bool { return isElement(e, step) }); i >= 0 {
			below = f[i]
		}
		list[at] = Replace(list[at], below, path[1:])
		return list
	}
}

// isElement reports whether a path element identifies the element of a list.
func isElement(e any, step fieldpath.PathElement) bool {
	if step.Value != nil {
		return fmt.Sprint((*step.Value).Unstructured()) == fmt.Sprint(e)
	}
	m, ok := e.(map[string]any)
	if !ok || step.Key == nil {
		return false
	}
	for _, field := range *step.Key {
		if fmt.Sprint(m[field.Name]) != fmt.Sprint(field.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// At returns the value at a path.
func At(v any, path fieldpath.Path) (any, bool) {
	for _, step := range path {
		if step.FieldName != nil {
			m, _ := v.(map[string]any)
			below, there := m[*step.FieldName]
			if !there {
				return nil, false
			}
			v = below
			continue
		}
		list, _ := v.([]any)
		at := slices.IndexFunc(list, func(e any) bool { return isElement(e, step) })
		if at < 0 {
			return nil, false
		}
		v = list[at]
	}
	return v, true
}
