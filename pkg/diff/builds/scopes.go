package builds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/repository"
)

// scopes holds, for each kind whose CRD is built, whether it is namespaced.
type scopes map[schema.GroupKind]bool

func scopesOf(all []Pair) scopes {
	known := scopes{}
	for _, d := range all {
		for _, side := range d.sides() {
			for _, o := range side.Build.Objects {
				if controllers.VersionedIDOf(o.Unstructured.Object).IsCRD() {
					known[crd.Kind(o.Object)] = !crd.Of(o.Object).ClusterScoped
				}
			}
		}
	}
	return known
}

// ref returns the Ref of an object, with the namespace of the side if its manifest has none.
// Without a cluster, the scope is known only for kinds of Kubernetes, of Flux and of the builds.
func (s scopes) ref(side *repository.Rendering, o build.Object) controllers.VersionedID {
	ref := controllers.VersionedIDOf(o.Unstructured.Object)
	if ref.Namespace == "" && s.namespaced(ref) {
		ref.Namespace = side.Namespace
	}
	return ref
}

// note adds a note to the change of a release object with an unknown scope: the namespace that the
// object has if its kind is namespaced.
func (s scopes) note(side *repository.Rendering, change diff.Change) diff.Change {
	_, known := s.scope(change.Object)
	if change.Different() && !known && side.Namespace != "" && change.Object.Namespace == "" {
		change.Notes = append(change.Notes, fmt.Sprintf("in namespace %s if its kind is namespaced, which is unknown: no CRD in the builds defines it", side.Namespace))
	}
	return change
}

// Complete sets the namespace of release objects without one, as Helm does, if their kinds are known
// to be namespaced.
func Complete(all []Pair) { scopesOf(all).complete(all) }

func (s scopes) complete(all []Pair) {
	for _, d := range all {
		for _, side := range d.sides() {
			for _, o := range side.Build.Objects {
				if o.GetNamespace() == "" && side.Namespace != "" && s.namespaced(controllers.VersionedIDOf(o.Unstructured.Object)) {
					o.SetNamespace(side.Namespace)
				}
			}
		}
	}
}

func (s scopes) namespaced(ref controllers.VersionedID) bool {
	namespaced, known := s.scope(ref)
	return known && namespaced
}

// scope reports whether a kind is namespaced, and whether that is known.
func (s scopes) scope(ref controllers.VersionedID) (namespaced, known bool) {
	gvk := ref.GroupVersionKind()
	if namespaced, ok := s[gvk.GroupKind()]; ok {
		return namespaced, true
	}
	if _, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok {
		return true, true
	}
	return build.Scope(gvk)
}
