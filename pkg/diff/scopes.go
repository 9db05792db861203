package diff

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// scopes reports for the kinds whose CRDs are built whether they are namespaced.
type scopes map[schema.GroupKind]bool

func scopesOf(all []Desired) scopes {
	known := scopes{}
	for _, d := range all {
		for _, side := range []*Side{d.Before, d.After} {
			if side == nil {
				continue
			}
			for _, o := range side.Build.Objects {
				if isCRD(RefOf(o.Unstructured)) {
					known[crdKind(o.Object)] = !crdOf(o.Object).clusterScoped
				}
			}
		}
	}
	return known
}

// ref returns the Ref of an object, with the namespace of the side if its manifest has none.
// Without a cluster, the scope is known only for kinds of Kubernetes, of Flux and of the builds.
func (s scopes) ref(side *Side, o build.Object) Ref {
	ref := RefOf(o.Unstructured)
	if ref.Namespace == "" && s.namespaced(ref) {
		ref.Namespace = side.Namespace
	}
	return ref
}

// complete sets the namespace of the objects of a release that have none and are of kinds that are
// known to be namespaced.
func (s scopes) complete(side *Side) {
	if side == nil || side.Namespace == "" {
		return
	}
	for _, o := range side.Build.Objects {
		if o.GetNamespace() == "" && s.namespaced(RefOf(o.Unstructured)) {
			o.SetNamespace(side.Namespace)
		}
	}
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
