package controllers

// The annotations by which `flux suspend` remembers why an object is suspended
// and by whom. Controllers do not look at them; `flux resume` removes them.
const (
	SuspendReasonAnnotation = "fluxkit.dev/suspend-reason"
	SuspendedByAnnotation   = "fluxkit.dev/suspended-by"
)

// SuspendNote says why an object is suspended and by whom, as in "release
// freeze (by jane)"; it is "" where nobody has written it down. What an object
// still carries that has been resumed by other means is no longer true and
// left out.
func SuspendNote(o Object) string {
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
