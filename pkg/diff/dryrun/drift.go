package dryrun

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// changedByOthers reports whether a manager other than the controller has set fields of a live
// object, such as kubectl scale. The last applied revision is read only then, to detect drift.
func (c *comparison) changedByOthers(live controllers.Object) bool {
	return slices.ContainsFunc((&unstructured.Unstructured{Object: live}).GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != c.by.Manager && entry.Subresource != "status"
	})
}

// isLastApplied reports whether an object of the build equals that of the last applied revision.
// If it does, a difference from the live object is drift. It returns false if the revision cannot
// be read.
func (c *comparison) isLastApplied(ctx context.Context, ref controllers.VersionedID, o item) bool {
	if c.Drift || !c.Reconciled {
		return false // drift is reported for the whole result, or unknown
	}
	applied, err := c.lastApplied(ctx)
	if err != nil || applied == nil {
		return false
	}
	return slices.ContainsFunc(applied.Objects, func(last build.Object) bool {
		return controllers.IDOf(last.Unstructured.Object) == ref.ID && apiequality.Semantic.DeepEqual(last.Object, o.built.Object)
	})
}
