package dryrun

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// A nil *Release is the release of a Kustomization: none of the rules below applies to it.

// isKept reports whether Helm keeps an object that the release no longer contains. An upgrade reads
// the annotation of the live object, an uninstallation reads the annotation in the applied manifest.
func (r *Release) isKept(ref controllers.VersionedID, live map[string]any) bool {
	if r.Step == diff.Upgrade {
		return policy.KeptByHelm(live)
	}
	last := r.last(ref.ID)
	return last != nil && policy.KeptByHelm(last.Object)
}

// skipsExisting returns why an object is not applied because it exists, or "" if it is applied.
func (r *Release) skipsExisting(o item, live map[string]any) string {
	if r != nil && r.CreateOnly && o.built.Ahead && live != nil {
		return "existing CRDs are not updated"
	}
	return ""
}

// adoptionRefused returns why Helm refuses to adopt an object.
func (r *Release) adoptionRefused(ref controllers.VersionedID, o item, live map[string]any) string {
	if r == nil || live == nil || o.built.Ahead || !r.NoAdoption || r.last(ref.ID) != nil {
		return ""
	}
	annotations := policy.TextMap(live, "metadata", "annotations")
	for key, value := range r.ownerAnnotations() {
		if annotations[key] != value {
			return "the object exists and is not part of this release, and disableTakeOwnership is set"
		}
	}
	return ""
}

// replaces reports whether an object is deleted with the old release and created with the new one.
func (r *Release) replaces(ref controllers.VersionedID, live map[string]any) bool {
	return r != nil && r.Step == diff.Reinstall && live != nil && r.last(ref.ID) != nil && !r.isKept(ref, live)
}

// tolerate removes labels and annotations of other field managers from the comparison, which the
// controller does not treat as drift.
func (r *Release) tolerate(before, after map[string]any) {
	if r == nil || r.Step != diff.Keep {
		return
	}
	for _, at := range []string{"labels", "annotations"} {
		all := policy.TextMap(before, "metadata", at)
		if all == nil {
			continue
		}
		maps.Copy(all, policy.TextMap(after, "metadata", at))
		_ = unstructured.SetNestedStringMap(after, all, "metadata", at) // every object has metadata
	}
}

// skipChanges replaces the changes of a release that fails before Helm changes anything but the CRDs
// from crds/.
func (r *Release) skipChanges(result *diff.Result) {
	result.Hooks = nil
	for i, change := range result.Changes {
		ahead := i < len(r.Ahead) && change.Object.IsCRD()
		if !ahead && change.Different() && change.Action != diff.Failed {
			result.Changes[i] = diff.Change{Object: change.Object, Action: diff.Skipped, Reason: "not applied: Helm fails before it changes anything"}
		}
	}
}
