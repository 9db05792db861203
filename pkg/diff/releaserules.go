package diff

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// A nil *Release is the release of a Kustomization: none of the rules below applies to it.

func hasKeepPolicy(o map[string]any) bool {
	return textMap(o, "metadata", "annotations")[keepPolicy] == "keep"
}

// isKept reports whether Helm keeps an object that the release no longer has: an upgrade reads the
// annotation of the live object, an uninstallation that of the applied one.
func (r *Release) isKept(ref controllers.VersionedID, live map[string]any) bool {
	if r.Step == Upgrade {
		return hasKeepPolicy(live)
	}
	last := r.last(ref.ID)
	return last != nil && hasKeepPolicy(last.Object)
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
	annotations := textMap(live, "metadata", "annotations")
	for key, value := range r.ownerAnnotations() {
		if annotations[key] != value {
			return "the object exists and is not part of this release, and disableTakeOwnership is set"
		}
	}
	return ""
}

// replaces reports whether an object is deleted with the old release and created with the new one.
func (r *Release) replaces(ref controllers.VersionedID, live map[string]any) bool {
	return r != nil && r.Step == Reinstall && live != nil && r.last(ref.ID) != nil && !r.isKept(ref, live)
}

// tolerate removes labels and annotations of other field managers from the comparison, which the
// controller does not treat as drift.
func (r *Release) tolerate(before, after map[string]any) {
	if r == nil || r.Step != Keep {
		return
	}
	for _, at := range []string{"labels", "annotations"} {
		all := textMap(before, "metadata", at)
		if all == nil {
			continue
		}
		maps.Copy(all, textMap(after, "metadata", at))
		_ = unstructured.SetNestedStringMap(after, all, "metadata", at) // every object has metadata
	}
}

// skipChanges replaces the changes of a release that fails before Helm changes anything but the CRDs
// from crds/.
func (r *Release) skipChanges(result *Result) {
	result.Hooks = nil
	for i, change := range result.Changes {
		ahead := i < len(r.Ahead) && isCRD(change.Object)
		if !ahead && change.Different() && change.Action != Failed {
			result.Changes[i] = Change{Object: change.Object, Action: Skipped, Reason: "not applied: Helm fails before it changes anything"}
		}
	}
}
