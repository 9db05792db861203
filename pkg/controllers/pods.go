package controllers

import (
	"fmt"
	"maps"
	"slices"
)

// Part is an object in a field of another one.
type Part struct {
	// Field is the path of the field, such as spec.template.spec.containers[0], and "" for the object itself.
	Field string
	Object
}

// Text returns a field of the part, as Path does.
func (p Part) Text(field string) string { return Path{field}.String(p.Object) }

// PodSpecs returns the pod specs in an object: maps with a list of containers, at any depth, because custom resources
// contain them, too.
func PodSpecs(o Object) []Part { return podSpecs("", o) }

func podSpecs(at string, value any) []Part {
	var found []Part
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["containers"].([]any); ok {
			found = append(found, Part{at, value})
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, podSpecs(below(at, key), value[key])...)
		}
	case []any:
		for i, item := range value {
			found = append(found, podSpecs(fmt.Sprintf("%s[%d]", at, i), item)...)
		}
	}
	return found
}

func below(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// Containers returns the containers of a pod spec, in the order of containers, initContainers and ephemeralContainers.
func Containers(pod Part) []Part {
	var found []Part
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		found = append(found, pod.Elements(list)...)
	}
	return found
}

// Elements returns the objects in a list of the part. It skips elements of other types.
func (p Part) Elements(list string) []Part {
	value, _ := Path{list}.Lookup(p.Object)
	items, _ := value.([]any)
	var found []Part
	for i, item := range items {
		if element, ok := item.(map[string]any); ok {
			found = append(found, Part{fmt.Sprintf("%s[%d]", below(p.Field, list), i), element})
		}
	}
	return found
}
