package output

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Unstructured converts objects to the type that the printers of cli-runtime accept.
func Unstructured(objects []controllers.Object) []unstructured.Unstructured {
	items := make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		items[i] = unstructured.Unstructured{Object: o}
	}
	return items
}
