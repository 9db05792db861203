package controllers

// Annotations in which `flux suspend` records the reason and the user. Controllers ignore them, and
// `flux resume` removes them.
const (
	SuspendReasonAnnotation = "fluxkit.dev/suspend-reason"
	SuspendedByAnnotation   = "fluxkit.dev/suspended-by"
)

// SuspensionReason returns the reason for the suspension and the user, for example "release freeze
// (by jane)". It returns "" if neither is recorded or if the object is not suspended, since other
// ways to resume an object do not remove the annotations.
func SuspensionReason(o Object) string {
	k, ok := FindKind(Path{"kind"}.String(o))
	if ok && !k.Suspension.Is(o) {
		return ""
	}
	reason, by := Annotation(o, SuspendReasonAnnotation), Annotation(o, SuspendedByAnnotation)
	switch {
	case by == "":
		return reason
	case reason == "":
		return "by " + by
	default:
		return reason + " (by " + by + ")"
	}
}

// Reconciled reports whether the controller has reconciled the current spec, apart from its
// suspension. A controller also observes the generations of a suspended object, without reconciling
// it: the Ready condition keeps the generation of the last reconciliation.
func Reconciled(o Object) bool {
	generation, _ := Path{"metadata.generation"}.Lookup(o)
	value, _ := Path{"status.observedGeneration"}.Lookup(o)
	latest, observed := integer(generation), integer(value)
	k, _ := FindKind(Path{"kind"}.String(o))
	c, found := FindCondition(o, "Ready")
	if !k.Suspension.Is(o) || !found || c.ObservedGeneration == 0 {
		return observed == latest
	}
	return min(observed, c.ObservedGeneration) >= latest-1 // the suspension is one change of the spec
}
