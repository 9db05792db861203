package output

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

func Unstructured(objects []controllers.Object) []unstructured.Unstructured {
	items := make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		items[i] = unstructured.Unstructured{Object: o}
	}
	return items
}
