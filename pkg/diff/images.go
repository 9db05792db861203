package diff

import "strings"

// ImagesOf returns the container images that differ between two versions of an object, in any list
// of containers.
func ImagesOf(before, after map[string]any) []Image {
	old, young := map[string]string{}, map[string]string{}
	containers(before, old)
	containers(after, young)
	var changed []Image
	for _, name := range keys(old, young) {
		if old[name] != young[name] {
			changed = append(changed, Image{Container: name, Before: old[name], After: young[name]})
		}
	}
	return changed
}

func containers(v any, found map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if list, ok := below.([]any); ok && (key == "containers" || strings.HasSuffix(key, "Containers")) {
				imagesOf(list, found)
			}
			containers(below, found)
		}
	case []any:
		for _, below := range v {
			containers(below, found)
		}
	}
}

func imagesOf(list []any, found map[string]string) {
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		if image, ok := m["image"].(string); ok {
			found[name] = image
		}
	}
}
