// Package managedfields reads which field manager owns the fields of an object, and when it last changed them.
package managedfields

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Manager is an entry of metadata.managedFields.
type Manager struct {
	Name, Subresource string
	// At is the time of the last change, or zero if it is unknown.
	At time.Time
	// fields is a FieldsV1: "f:NAME" for a field, "k:{…}" for a list element by its keys, "v:VALUE" for a list element by its
	// value.
	fields map[string]any
}

// Of returns the field managers of an object.
func Of(o controllers.Object) []Manager {
	list, _ := controllers.Path{"metadata.managedFields"}.Lookup(o)
	entries, _ := list.([]any)
	var managers []Manager
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		fields, _ := m["fieldsV1"].(map[string]any)
		at, _ := time.Parse(time.RFC3339Nano, field("time")) // zero if it is missing
		managers = append(managers, Manager{field("manager"), field("subresource"), at.UTC(), fields})
	}
	return managers
}

// Changed returns the time of the last change of an object, except changes of its metadata and status.
func Changed(o controllers.Object) time.Time {
	var last time.Time
	for _, m := range Of(o) {
		_, metadata := m.fields["f:metadata"]
		if only := metadata && len(m.fields) == 1; m.Subresource == "" && !only && m.At.After(last) {
			last = m.At
		}
	}
	return last
}

// Owns reports whether a manager owns a field. An entry without children owns the whole value.
func (m Manager) Owns(path []string) bool {
	at := m.fields
	for i, step := range path {
		if i > 0 && len(at) == 0 {
			return true
		}
		below, ok := at[step]
		if !ok {
			return false
		}
		at, _ = below.(map[string]any)
	}
	return true
}

// OwnersOf returns the managers that own the field at an RFC 6901 pointer, newest first. The pointer has the indices of the lists
// in content, which is the object or a changed version of it.
func OwnersOf(managers []Manager, content map[string]any, pointer string) []Manager {
	var path []string
	var value any = content
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		key := "f:" + unescape.Replace(token)
		if list, isList := value.([]any); isList {
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(list) {
				return nil
			}
			owned := []map[string]any{}
			for _, m := range managers {
				owned = append(owned, m.fields)
			}
			for _, step := range path {
				owned = inner(owned, step)
			}
			value = list[i]
			if key = element(value, owned); key == "" {
				if !slices.ContainsFunc(owned, func(m map[string]any) bool { return len(m) == 0 }) {
					return nil
				}
				break // the list is owned as a whole
			}
		} else {
			m, _ := value.(map[string]any)
			value = m[unescape.Replace(token)]
		}
		path = append(path, key)
	}
	owners := slices.DeleteFunc(slices.Clone(managers), func(m Manager) bool { return !m.Owns(path) })
	slices.SortStableFunc(owners, func(a, b Manager) int { return b.At.Compare(a.At) })
	return owners
}

// Unowned returns the fields of a desired object that none of the managers owns, as paths in FieldsV1. An applier owns the fields
// that it has set until another manager changes them.
func Unowned(desired map[string]any, managers []Manager) [][]string {
	var owned []map[string]any
	for _, m := range managers {
		owned = append(owned, m.fields)
	}
	w := &walk{}
	for name, value := range desired {
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

// walk collects the unowned fields.
type walk struct{ found [][]string }

func (w *walk) field(at []string, name string, value any, owned []map[string]any) {
	if list, isList := value.([]any); value == nil || isList && len(list) == 0 {
		return // the API server omits it
	}
	w.step(append(slices.Clip(at), "f:"+name), value, inner(owned, "f:"+name))
}

// step compares a value with the owned fields at its path. An entry without children owns the whole value.
func (w *walk) step(at []string, value any, owned []map[string]any) {
	if len(owned) == 0 {
		w.found = append(w.found, at)
		return
	}
	if slices.ContainsFunc(owned, func(m map[string]any) bool { return len(m) == 0 }) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
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

// element returns the key of a list element in a FieldsV1, or "" if no manager owns it. The API server defaults keys that the
// element omits.
func element(item any, owned []map[string]any) string {
	for _, m := range owned {
		for _, key := range slices.Sorted(maps.Keys(m)) {
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
