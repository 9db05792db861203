package build

import (
	"maps"
	"slices"
	"strconv"
)

// EachLeaf calls each for the scalars of a document, with their paths, in the order of the keys.
func EachLeaf(value any, each func(path []string, leaf any)) { eachLeaf(value, nil, each) }

func eachLeaf(value any, at []string, each func(path []string, leaf any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			eachLeaf(value[key], append(slices.Clone(at), key), each)
		}
	case []any:
		for i, item := range value {
			eachLeaf(item, append(slices.Clone(at), strconv.Itoa(i)), each)
		}
	default:
		each(at, value)
	}
}

// MapLeaves returns a copy of a document with other scalars.
func MapLeaves(value any, leaf func(any) any) any {
	switch value := value.(type) {
	case map[string]any:
		other := make(map[string]any, len(value))
		for key, v := range value {
			other[key] = MapLeaves(v, leaf)
		}
		return other
	case []any:
		other := make([]any, len(value))
		for i, v := range value {
			other[i] = MapLeaves(v, leaf)
		}
		return other
	}
	return leaf(value)
}
