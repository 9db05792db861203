package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxkit/flux/pkg/controllers"
)

// currentFields returns the managed fields of an object, with all entries converted to one version,
// and whether any entry changed. Except for the removed fields, the schemas of all versions of a
// Flux kind are the same, so that fields need no conversion.
func currentFields(o controllers.Object, apiVersion string, removed []controllers.Removed) (fields []any, stale bool) {
	list, _ := controllers.Path{"metadata.managedFields"}.Lookup(o)
	noted, _ := list.([]any)
	at := map[string]int{}
	for _, item := range noted {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		entry = maps.Clone(entry)
		if entry["apiVersion"] != apiVersion {
			entry["apiVersion"] = apiVersion
			move(entry, removed)
			stale = true
		}
		// The server keeps one entry for each manager and version.
		owner := fmt.Sprint(entry["manager"], "\x00", entry["operation"], "\x00", entry["subresource"])
		if i, twice := at[owner]; twice {
			if both, ok := union(fields[i], entry); ok {
				fields[i] = both
				continue
			}
		}
		at[owner] = len(fields)
		fields = append(fields, entry)
	}
	return fields, stale
}

// move deletes fields that the new API version does not have from an entry of managedFields. The
// owner of a moved field becomes the owner of its new field.
func move(entry map[string]any, removed []controllers.Removed) {
	owned, _ := entry["fieldsV1"].(map[string]any)
	spec, _ := owned["f:spec"].(map[string]any)
	for _, r := range removed {
		leaf, has := spec["f:"+r.Field]
		delete(spec, "f:"+r.Field)
		if parent, name := r.Parent(); has && r.Moved != "" {
			below, _ := spec["f:"+parent].(map[string]any)
			if below == nil {
				below = map[string]any{}
				spec["f:"+parent] = below
			}
			below["f:"+name] = leaf
		}
	}
}

// union merges two entries of a manager and keeps the later time.
func union(one any, other map[string]any) (map[string]any, bool) {
	first, ok := one.(map[string]any)
	if !ok {
		return nil, false
	}
	a, okA := setOf(first)
	b, okB := setOf(other)
	if !okA || !okB {
		return nil, false
	}
	text, err := a.Union(b).ToJSON()
	if err != nil {
		return nil, false
	}
	var merged map[string]any
	if err := json.Unmarshal(text, &merged); err != nil {
		return nil, false
	}
	both := maps.Clone(first)
	both["fieldsV1"] = merged
	if was, _ := first["time"].(string); was < fmt.Sprint(other["time"]) {
		both["time"] = other["time"]
	}
	return both, true
}

func setOf(entry map[string]any) (*fieldpath.Set, bool) {
	text, err := json.Marshal(entry["fieldsV1"])
	if err != nil {
		return nil, false
	}
	set := fieldpath.NewSet()
	return set, set.FromJSON(bytes.NewReader(text)) == nil
}
