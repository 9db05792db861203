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
