package build

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// InRepository returns a lookup among the manifests of a tree. A manifest without a namespace
// matches all namespaces, since a kustomization may set the namespace.
func InRepository(tree fs.FS) Lookup {
	return LookupFunc(Once(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		return searchData(ctx, tree, object)
	}))
}

func searchData(ctx context.Context, tree fs.FS, object controllers.ID) (map[string][]byte, error) {
	found, err := sourcetree.Search(ctx, tree, []string{object.Name, object.Kind}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == "" || o.GetNamespace() == object.Namespace
		return o.GetAPIVersion() == "v1" && o.GetKind() == object.Kind && o.GetName() == object.Name && here
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	best := found[0]
	var files []string
	for _, m := range found {
		if best.GetNamespace() == "" && m.GetNamespace() != "" {
			best = m
		}
		files = append(files, m.File)
	}
	same := 0
	for _, m := range found {
		if m.GetNamespace() == best.GetNamespace() {
			same++
		}
	}
	if same > 1 {
		return nil, fmt.Errorf("defined in more than one file: %s", strings.Join(files, ", "))
	}
	if sealed(best.Unstructured) {
		return nil, &EncryptedError{best.File}
	}
	return DataOf(best.Unstructured)
}
