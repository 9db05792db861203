package diagnose

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// fieldManager is an entry of metadata.managedFields.
type fieldManager struct {
	name, operation, subresource string
	at                           time.Time
	// fields is a FieldsV1: "f:NAME" for a field, "k:{…}" for a list element by
	// its keys, "v:VALUE" for a list element by its value.
	fields map[string]any
}

// managersOf returns the field managers of an object.
func managersOf(o controllers.Object) []fieldManager {
	list, _ := controllers.Path{"metadata.managedFields"}.Lookup(o)
	entries, _ := list.([]any)
	var managers []fieldManager
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		fields, _ := m["fieldsV1"].(map[string]any)
		managers = append(managers, fieldManager{field("manager"), field("operation"), field("subresource"), moment(field("time")), fields})
	}
	return managers
}

// specChanged returns the time of the last change of an object, except changes
// of its metadata and status.
func specChanged(o controllers.Object) time.Time {
	var last time.Time
	for _, m := range managersOf(o) {
		_, metadata := m.fields["f:metadata"]
		if only := metadata && len(m.fields) == 1; m.subresource == "" && !only && m.at.After(last) {
			last = m.at
		}
	}
	return last
}

// unowned returns the fields of a desired object that none of the managers
// owns, as paths in FieldsV1. An applier owns the fields that it has set until
// another manager changes them.
func unowned(desired any, owned ...map[string]any) [][]string {
	w := &fieldWalk{}
	m, _ := desired.(map[string]any)
	for name, value := range m {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := value.(map[string]any)
			for _, part := range []string{"labels", "annotations"} {
				if of, there := metadata[part]; there {
					w.field([]string{"f:metadata"}, part, of, inner(owned, "f:metadata"))
				}
			}
		default:
			w.field(nil, name, value, owned)
		}
	}
	slices.SortFunc(w.found, func(a, b []string) int { return slices.Compare(a, b) })
	return w.found
}

type fieldWalk struct{ found [][]string }

func (w *fieldWalk) field(at []string, name string, value any, owned []map[string]any) {
	if value == nil || empty(value) {
		return // the API server omits it
	}
	w.step(append(slices.Clip(at), "f:"+name), value, inner(owned, "f:"+name))
}

// step compares a value with the owned fields at its path. An entry without
// children owns the whole value.
func (w *fieldWalk) step(at []string, value any, owned []map[string]any) {
	if len(owned) == 0 {
		w.found = append(w.found, at)
		return
	}
	if slices.ContainsFunc(owned, func(m map[string]any) bool { return len(m) == 0 }) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			w.field(at, name, value[name], owned)
		}
	case []any:
		for _, item := range value {
			key := element(item, owned)
			if key == "" {
				w.found = append(w.found, at)
				continue
			}
			w.step(append(slices.Clip(at), key), item, inner(owned, key))
		}
	}
}

// inner returns the owned fields below a key.
func inner(owned []map[string]any, key string) []map[string]any {
	var below []map[string]any
	for _, m := range owned {
		if v, ok := m[key]; ok {
			fields, _ := v.(map[string]any)
			below = append(below, fields)
		}
	}
	return below
}

// element returns the key of a list element in a FieldsV1, "" if no manager
// owns it. The API server defaults keys that the element omits.
func element(item any, owned []map[string]any) string {
	for _, m := range owned {
		for _, key := range sortedKeys(m) {
			kind, text, _ := strings.Cut(key, ":")
			var identity any
			if json.Unmarshal([]byte(text), &identity) != nil {
				continue
			}
			switch kind {
			case "v":
				if same(identity, item) {
					return key
				}
			case "k":
				keys, _ := identity.(map[string]any)
				if fields, ok := item.(map[string]any); ok && identified(fields, keys) {
					return key
				}
			}
		}
	}
	return ""
}

func identified(fields, keys map[string]any) bool {
	any := false
	for name, want := range keys {
		is, there := fields[name]
		if there && !same(is, want) {
			return false
		}
		any = any || there
	}
	return any
}

// same compares JSON values. Numbers are equal regardless of their Go types.
func same(a, b any) bool {
	number := func(v any) (float64, bool) {
		switch v := v.(type) {
		case int64:
			return float64(v), true
		case int:
			return float64(v), true
		case float64:
			return v, true
		}
		return 0, false
	}
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func empty(value any) bool {
	list, isList := value.([]any)
	return isList && len(list) == 0
}

// owns reports whether a manager owns a field.
func (m fieldManager) owns(path []string) bool {
	at := m.fields
	for _, step := range path {
		below, ok := at[step]
		if !ok {
			return false
		}
		at, _ = below.(map[string]any)
	}
	return true
}
