package sourcetree

import (
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// SparseCheckout returns the path prefixes in spec.sparseCheckout of a GitRepository, or nil for all
// paths.
func SparseCheckout(repository *unstructured.Unstructured) []string {
	var only []string
	dirs, _, _ := unstructured.NestedStringSlice(repository.Object, "spec", "sparseCheckout")
	for _, dir := range dirs {
		only = append(only, strings.TrimPrefix(dir, "./"))
	}
	return only
}

// Included returns the parts in spec.include of a GitRepository. content returns the artifact of
// another GitRepository.
func Included(repository *unstructured.Unstructured, content func(controllers.ID) (fs.FS, error)) ([]Part, error) {
	var parts []Part
	list, _, _ := unstructured.NestedSlice(repository.Object, "spec", "include")
	for _, item := range list {
		m, _ := item.(map[string]any)
		name := controllers.Path{"repository.name"}.String(m)
		tree, err := content(controllers.FluxID(controllers.GitRepository, repository.GetNamespace(), name))
		if err != nil {
			return nil, err
		}
		part := Part{Tree: tree, From: controllers.Path{"fromPath"}.String(m), At: controllers.Path{"toPath"}.String(m)}
		if part.At == "" {
			part.At = name
		}
		parts = append(parts, part)
	}
	return parts, nil
}
