package inventory

import (
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Exclusion is a label or annotation that excludes an object from reconciliation, and its effect.
type Exclusion struct{ Key, Value, Effect string }

// exclusions lists the exclusions (kustomize-controller, "Controlling the apply behavior of resources").
var exclusions = []Exclusion{
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled", "Flux does not apply it"},
	{"kustomize.toolkit.fluxcd.io/ssa", "Ignore", "Flux does not apply it"},
	{"kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", "it is created once and never updated"},
	{"helm.toolkit.fluxcd.io/driftDetection", "disabled", "its drift is not corrected"},
}

// Exclusions returns the exclusions of an object.
func Exclusions(o controllers.Object) []Exclusion {
	return slices.DeleteFunc(slices.Clone(exclusions), func(e Exclusion) bool { return !controllers.HasSetting(o, e.Key, e.Value) })
}

func isExcluded(o controllers.Object) bool { return len(Exclusions(o)) > 0 }
