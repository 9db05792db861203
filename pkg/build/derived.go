package build

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Mark compares objects with those of a second build with other secret values, and sets Twin and
// Secret of the objects that differ. An object without a counterpart is derived from secret values
// as a whole.
func Mark(objects, again []Object) {
	twins := paired(objects, again)
	for i := range objects {
		o, twin := &objects[i], twins[i]
		if twin == nil {
			twin = &unstructured.Unstructured{Object: map[string]any{}}
		}
		paths := derivedPaths(o.Object, twin.Object)
		if len(paths) == 0 && controllers.IDOf(o.Unstructured.Object) == controllers.IDOf(twin.Object) {
			continue
		}
		o.Twin = twin
		for _, path := range paths {
			if !slices.ContainsFunc(o.Secret, func(known []string) bool { return slices.Equal(known, path) }) {
				o.Secret = append(o.Secret, path)
			}
		}
	}
}

// paired returns the counterpart of each object, or nil. Objects with another identity in the second
// build are paired by their order, if both builds have the same number of unpaired objects of their
// kind.
func paired(objects, again []Object) []*unstructured.Unstructured {
	same := map[string][]*unstructured.Unstructured{}
	for _, o := range again {
		same[identity(o)] = append(same[identity(o)], o.Unstructured)
	}
	twins := make([]*unstructured.Unstructured, len(objects))
	left := map[schema.GroupKind][]int{}
	for i, o := range objects {
		if found := same[identity(o)]; len(found) > 0 {
			twins[i], same[identity(o)] = found[0], found[1:]
			continue
		}
		kind := o.GroupVersionKind().GroupKind()
		left[kind] = append(left[kind], i)
	}
	others := map[schema.GroupKind][]*unstructured.Unstructured{}
	for _, o := range again {
		if found := same[identity(o)]; len(found) > 0 && found[0] == o.Unstructured {
			same[identity(o)] = found[1:]
			kind := o.GroupVersionKind().GroupKind()
			others[kind] = append(others[kind], o.Unstructured)
		}
	}
	for kind, indices := range left {
		for n, i := range indices {
			if len(indices) == len(others[kind]) {
				twins[i] = others[kind][n]
			}
		}
	}
	return twins
}

// derivedPaths returns the paths at which an object differs from its twin, without its identity.
func derivedPaths(o, twin map[string]any) [][]string {
	var paths [][]string
	add := func(o, twin map[string]any, at []string, except ...string) {
		for _, key := range slices.Sorted(maps.Keys(Merged(o, twin))) {
			value, is := o[key]
			other, was := twin[key]
			path := append(slices.Clone(at), key)
			switch {
			case slices.Contains(except, key):
			case is != was:
				paths = append(paths, path)
			default:
				paths = append(paths, Different(value, other, path)...)
			}
		}
	}
	add(o, twin, nil, "apiVersion", "kind", "metadata")
	metadata, _ := o["metadata"].(map[string]any)
	other, _ := twin["metadata"].(map[string]any)
	add(metadata, other, []string{"metadata"}, "name", "namespace")
	return paths
}

// commonWords returns the words that two names begin with.
func commonWords(a, b string) string {
	common := 0
	for common < min(len(a), len(b)) && a[common] == b[common] {
		common++
	}
	return a[:strings.LastIndexAny(a[:common], "-.:/")+1]
}

// Alias returns the ID of the object for display: parts that are derived from a secret value are
// replaced by a hash.
func (o Object) Alias() controllers.ID {
	shown := controllers.IDOf(o.Unstructured.Object)
	if o.Twin == nil {
		return shown
	}
	twin := controllers.IDOf(o.Twin.Object)
	hide := func(part *string, other string) {
		if *part != other {
			*part = commonWords(*part, other) + placeholder.Alias(*part)
		}
	}
	if twin.Kind != "" { // without a counterpart, only the presence is secret
		hide(&shown.Group, twin.Group)
		hide(&shown.Kind, twin.Kind)
	}
	hide(&shown.Namespace, cmp.Or(twin.Namespace, shown.Namespace))
	hide(&shown.Name, twin.Name)
	return shown
}
