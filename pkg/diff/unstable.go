package diff

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

const unstableName = "its name differs on every rendering"

// renamed returns the kinds for which both builds have an object whose name differs on every
// rendering.
func renamed(before, after identified) map[schema.GroupKind]bool {
	kinds := func(objects identified) map[schema.GroupKind]bool {
		found := map[schema.GroupKind]bool{}
		for _, o := range objects {
			if hasUnstableName(o) {
				found[o.GroupVersionKind().GroupKind()] = true
			}
		}
		return found
	}
	both := kinds(before)
	for kind := range both {
		both[kind] = kinds(after)[kind]
	}
	return both
}

func hasUnstableName(o build.Object) bool { return len(o.Unstable) == 1 && len(o.Unstable[0]) == 0 }

// unstableName reports whether an object that only one build has is the counterpart of another.
func (c *between) unstableName(o build.Object) bool {
	return hasUnstableName(o) && c.renamed[o.GroupVersionKind().GroupKind()]
}

// stabilized returns both objects with the same placeholder for values that differ on every
// rendering of both, and the paths of these values.
func stabilized(old, young build.Object) (build.Object, build.Object, []string) {
	var paths []string
	for _, path := range young.Unstable {
		both := slices.ContainsFunc(old.Unstable, func(other []string) bool { return slices.Equal(other, path) })
		if !both || len(path) == 0 {
			continue
		}
		if len(paths) == 0 {
			old.Unstructured, young.Unstructured = old.DeepCopy(), young.DeepCopy()
		}
		if replaceAt(old.Unstructured, path) && replaceAt(young.Unstructured, path) {
			paths = append(paths, strings.Join(path, "."))
		}
	}
	return old, young, paths
}

// hideUnstable replaces the values that the controller will generate again, in an object as it will
// be applied, and returns a note about them.
func hideUnstable(after *unstructured.Unstructured, o build.Object) []string {
	if after == nil || len(o.Unstable) == 0 {
		return nil
	}
	if hasUnstableName(o) {
		return []string{unstableName}
	}
	var paths []string
	for _, path := range o.Unstable {
		path = slices.Clone(path)
		if isSecret(controllers.VersionedIDOf(o.Unstructured.Object)) && path[0] == "stringData" {
			path[0] = "data" // the server converts stringData to data
		}
		if replaceAt(after, path) {
			paths = append(paths, strings.Join(path, "."))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return []string{"generated on every rendering: " + strings.Join(paths, ", ")}
}

// replaceAt sets a placeholder at a path, and reports whether there is a value.
func replaceAt(o *unstructured.Unstructured, path []string) bool {
	const placeholder = "(differs on every rendering)"
	var at any = o.Object
	for i, key := range path {
		last := i == len(path)-1
		switch in := at.(type) {
		case map[string]any:
			if _, ok := in[key]; !ok {
				return false
			}
			if last {
				in[key] = placeholder
			}
			at = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(in) {
				return false
			}
			if last {
				in[n] = placeholder
			}
			at = in[n]
		default:
			return false
		}
	}
	return true
}
