package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxkit/flux/pkg/controllers"
)

// currentFields returns who owns the fields of an object, as of one version,
// and whether that differs from what is noted now. Versions of a kind of Flux
// differ in name only to the server, which converts nothing.
func currentFields(o controllers.Object, apiVersion string) (fields []any, stale bool) {
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
			stale = true
		}
		// The server keeps one entry an owner and version.
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

// union is an entry of an owner with the fields of two; the later time counts.
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
