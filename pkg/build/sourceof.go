package build

import (
	"context"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Sources returns the tree of a source, or ErrNotFound.
type Sources func(ctx context.Context, source controllers.ID) (fs.FS, error)

// IsKustomization reports whether an object is a Kustomization of Flux.
func IsKustomization(o *unstructured.Unstructured) bool {
	return o.GetKind() == controllers.Kustomization && strings.HasPrefix(o.GetAPIVersion(), toolkit+"/")
}

// IsHelmRelease reports whether an object is a HelmRelease of Flux.
func IsHelmRelease(o *unstructured.Unstructured) bool {
	return o.GetKind() == controllers.HelmRelease && strings.HasPrefix(o.GetAPIVersion(), "helm.toolkit.fluxcd.io/")
}

// SourceOf returns the source that the sourceRef of a Kustomization references.
func SourceOf(ks *unstructured.Unstructured) controllers.ID {
	reference, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "sourceRef")
	source := controllers.FluxID(reference["kind"], reference["namespace"], reference["name"])
	if source.Namespace == "" {
		source.Namespace = ks.GetNamespace()
	}
	return source
}
