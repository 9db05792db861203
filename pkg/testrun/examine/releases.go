package examine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// stored identifies a release in the Helm storage.
type stored struct{ namespace, name string }

// storedOf returns the release of a HelmRelease.
func storedOf(f settle.Flux) (stored, error) {
	target, err := charts.TargetOf(&unstructured.Unstructured{Object: f.Object})
	text := func(path string) string { return controllers.Path{path}.String(f.Object) }
	return stored{cmp.Or(text("status.storageNamespace"), target.Storage), cmp.Or(text("status.history[0].name"), target.Name)}, err
}

// released returns the selected objects with the field values of a release, as far as the API server
// accepts them. It dry-runs the stored manifest, because a HelmRelease does not apply its objects again.
func (r examination) released(ctx context.Context, f settle.Flux, at stored, selected map[controllers.ID][]controllers.ID) (map[controllers.ID]*unstructured.Unstructured, error) {
	history, err := helm.Read(ctx, r.Sandbox.Client, at.namespace, at.name)
	if err != nil || history == nil {
		return nil, err
	}
	current := history.Current()
	objects, err := charts.Stored(&unstructured.Unstructured{Object: f.Object}, current.Manifest, nil)
	if err != nil {
		return nil, err
	}
	targets := managed(f, selected)
	resource, err := r.Resources(ctx, targets)
	if err != nil {
		return nil, err
	}
	found := map[controllers.ID]*unstructured.Unstructured{}
	for _, m := range slices.SortedFunc(maps.Keys(targets), func(a, b controllers.VersionedID) int { return a.ID.Compare(b.ID) }) {
		ref := m.ID
		i := slices.IndexFunc(objects, func(o build.Object) bool {
			return o.GroupVersionKind().Group == ref.Group && o.GetKind() == ref.Kind && o.GetName() == ref.Name &&
				(ref.Namespace == "" || cmp.Or(o.GetNamespace(), current.Namespace) == ref.Namespace)
		})
		if i < 0 {
			continue
		}
		o := objects[i].DeepCopy()
		o.SetNamespace(ref.Namespace)
		result, err := kube.DryRun(ctx, r.Sandbox.Client, resource(o.GroupVersionKind()), o.Object, kube.Applier{Manager: f.Kind.Manager})
		if err != nil && !testrun.Rejected(err) {
			return nil, err
		}
		if err == nil {
			found[ref] = withoutOwner(&unstructured.Unstructured{Object: result})
		}
	}
	return found, nil
}

// withoutOwner removes the owner-specific fields of an object, and the fields that the API server maintains.
func withoutOwner(o *unstructured.Unstructured) *unstructured.Unstructured {
	controllers.RemoveOwner(o.Object)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}
