package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// names holds the fields that identify the elements of lists, in the order in which they are tried.
// The first field that all elements have, with distinct values, identifies them. Without such a
// field, elements are compared by content.
var names = []string{"name", "key", "id", "mountPath", "devicePath", "containerPort", "port", "topologyKey", "path", "host", "type", "ip"}

// Fields returns the differences between two objects, sorted by name. Empty and missing values are
// equal, as for the API server.
func Fields(before, after map[string]any) []Field {
	w := &walker{}
	w.maps(at{}, before, after)
	return w.found
}

// at is the path of a field in readable form and as an RFC 6901 pointer.
type at struct{ path, pointer string }

func (a at) child(name, key string) at {
	path := name
	if a.path != "" {
		path = a.path + "." + name
	}
	key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	return at{path, a.pointer + "/" + key}
}

type walker struct{ found []Field }

func (w *walker) add(parent at, name, key string, inList bool, op Op, before, after any) {
	here := parent.child(name, key)
	w.found = append(w.found, Field{
		Path: here.path, Pointer: here.pointer, Op: op, Before: before, After: after,
		Parent: parent.path, Key: name, InList: inList,
	})
}

func (w *walker) maps(here at, before, after map[string]any) {
	for _, key := range keys(before, after) {
		b, a := before[key], after[key]
		switch {
		case apiequality.Semantic.DeepEqual(b, a) || empty(b) && empty(a):
		case empty(b) && !scalar(a) || b == nil:
			w.add(here, key, key, false, Added, nil, a)
		case empty(a) && !scalar(b) || a == nil:
			w.add(here, key, key, false, Removed, b, nil)
		default:
			w.values(here, key, key, b, a)
		}
	}
}

// values compares two different values, neither of which is missing.
func (w *walker) values(parent at, name, key string, before, after any) {
	here := parent.child(name, key)
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			w.maps(here, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			w.lists(parent, name, key, b, a)
			return
		}
	}
	w.add(parent, name, key, false, Replaced, before, after)
}

func (w *walker) lists(parent at, name, key string, before, after []any) {
	here := parent.child(name, key)
	id := identifier(before, after)
	identity := func(v any) string {
		if id == "" {
			return canonical(v)
		}
		return fmt.Sprint(v.(map[string]any)[id])
	}
	old := positions(before, identity)
	found := len(w.found)
	var kept []int
	for i, a := range after {
		match, ok := old.take(identity(a))
		if !ok {
			w.add(here, label(id, i, a), strconv.Itoa(i), true, Added, nil, a)
			continue
		}
		kept = append(kept, match)
		if !apiequality.Semantic.DeepEqual(before[match], a) {
			w.values(here, label(id, i, a), strconv.Itoa(i), before[match], a)
		}
	}
	for i, b := range before {
		if old.left(identity(b), i) {
			w.add(here, label(id, i, b), strconv.Itoa(i), true, Removed, b, nil)
		}
	}
	if !slices.IsSorted(kept) && len(w.found) == found {
		w.add(parent, name, key, false, Reordered, before, after)
	}
}

// keys returns the keys of both maps, sorted.
func keys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// children returns the values in a map, or in a list by their indexes, and nil for other values.
func children(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		m := make(map[string]any, len(v))
		for i, element := range v {
			m[strconv.Itoa(i)] = element
		}
		return m
	}
	return nil
}

// set replaces a child that exists.
func set(in any, key string, value any) {
	switch in := in.(type) {
	case map[string]any:
		if _, ok := in[key]; ok {
			in[key] = value
		}
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(in) {
			in[i] = value
		}
	}
}

// valueAt returns the value at a path, or nil.
func valueAt(value any, path []string) any {
	for _, key := range path {
		value = children(value)[key]
	}
	return value
}

// index maps the identity of list elements to their positions.
type index map[string][]int

func positions(list []any, identity func(any) string) index {
	at := index{}
	for i, v := range list {
		at[identity(v)] = append(at[identity(v)], i)
	}
	return at
}

func (x index) take(id string) (int, bool) {
	found := x[id]
	if len(found) == 0 {
		return 0, false
	}
	x[id] = found[1:]
	return found[0], true
}

func (x index) left(id string, i int) bool { return slices.Contains(x[id], i) }

// label returns the name of an element of a list: its identifying field, or its index.
func label(id string, i int, v any) string {
	if id == "" {
		return strconv.Itoa(i)
	}
	return fmt.Sprint(v.(map[string]any)[id])
}

// identifier returns the field that identifies the elements of all lists, or "" if there is none.
func identifier(lists ...[]any) string {
	for _, name := range names {
		if slices.IndexFunc(lists, func(list []any) bool { return !identifies(name, list) }) < 0 {
			return name
		}
	}
	return ""
}

func identifies(name string, list []any) bool {
	seen := map[string]bool{}
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok || !scalar(m[name]) || m[name] == nil || seen[fmt.Sprint(m[name])] {
			return false
		}
		seen[fmt.Sprint(m[name])] = true
	}
	return true
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// canonical returns a value as JSON with sorted keys, so the strings are equal only for equal
// values.
func canonical(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // cannot fail for values decoded from JSON
		return fmt.Sprintf("%#v", v)
	}
	return string(data)
}
