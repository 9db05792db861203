package diff

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// scopes are the kinds whose CustomResourceDefinitions are built, by whether
// their objects are namespaced.
type scopes map[schema.GroupKind]bool

func scopesOf(all []Desired) scopes {
	known := scopes{}
	for _, d := range all {
		for _, side := range []*Side{d.Before, d.After} {
			if side == nil {
				continue
			}
			for _, o := range side.Build.Objects {
				if isDefinition(RefOf(o.Unstructured)) {
					known[definedKind(o.Object)] = !definitionOf(o.Object).clusterScoped
				}
			}
		}
	}
	return known
}

// ref names an object of a side, with the namespace that it goes to where its
// manifest has none. Without a cluster, that is only known of kinds that
// Kubernetes, Flux or the builds themselves define.
func (s scopes) ref(side *Side, o build.Object) Ref {
	ref := RefOf(o.Unstructured)
	if ref.Namespace == "" && s.namespaced(ref) {
		ref.Namespace = side.Namespace
	}
	return ref
}

func (s scopes) namespaced(ref Ref) bool {
	gvk := ref.kind()
	if namespaced, ok := s[gvk.GroupKind()]; ok {
		return namespaced
	}
	if _, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok {
		return true
	}
	return build.CertainlyNamespaced(gvk)
}
