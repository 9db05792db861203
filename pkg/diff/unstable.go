package diff

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// UnstableName is the note for an object whose counterpart has another name.
const UnstableName = "its name differs on every rendering"

// HasUnstableName reports whether the name of an object differs on every rendering.
func HasUnstableName(o build.Object) bool { return len(o.Unstable) == 1 && len(o.Unstable[0]) == 0 }

// HideUnstable replaces the values that the controller will generate again, in an object as it will
// be applied, and returns a note about them.
func HideUnstable(after *unstructured.Unstructured, o build.Object) []string {
	if after == nil || len(o.Unstable) == 0 {
		return nil
	}
	if HasUnstableName(o) {
		return []string{UnstableName}
	}
	var paths []string
	for _, path := range o.Unstable {
		path = slices.Clone(path)
		if controllers.VersionedIDOf(o.Unstructured.Object).IsSecret() && path[0] == "stringData" {
			path[0] = "data" // the server converts stringData to data
		}
		if SetPlaceholder(after, path) {
			paths = append(paths, strings.Join(path, "."))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return []string{"generated on every rendering: " + strings.Join(paths, ", ")}
}

// SetPlaceholder replaces the value at a path with a placeholder, and reports whether there was
// one.
func SetPlaceholder(o *unstructured.Unstructured, path []string) bool {
	var in any = o.Object
	for i, key := range path {
		below, ok := children(in)[key]
		if !ok {
			return false
		}
		if i == len(path)-1 {
			set(in, key, "(differs on every rendering)")
		}
		in = below
	}
	return true
}
