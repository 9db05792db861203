package reconciler

import "github.com/fluxkit/flux/pkg/controllers"

// resumption returns the patch that resumes an object and removes the reason and
// the author of its suspension.
func resumption(k controllers.Kind) map[string]any {
	change := k.Suspension.Change(false)
	Annotate(change, map[string]any{controllers.SuspendReasonAnnotation: nil, controllers.SuspendedByAnnotation: nil})
	return change
}

// Annotate adds annotations to a merge patch.
func Annotate(change, annotations map[string]any) {
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		change["metadata"] = meta
	}
	all, ok := meta["annotations"].(map[string]any)
	if !ok {
		all = map[string]any{}
		meta["annotations"] = all
	}
	for key, value := range annotations {
		all[key] = value
	}
}
