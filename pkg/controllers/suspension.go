package controllers

import (
	"fmt"
	"strings"
	"time"
)

// Annotations in which `flux suspend` records the reason, the user and the time at which the
// suspension expires (RFC 3339). Controllers ignore them, and `flux resume` removes them.
const (
	SuspendReasonAnnotation  = "fluxkit.dev/suspend-reason"
	SuspendedByAnnotation    = "fluxkit.dev/suspended-by"
	SuspendedUntilAnnotation = "fluxkit.dev/suspended-until"
)

// Resumption returns the merge patch that resumes an object and removes the reason, the author and the
// expiration of its suspension.
func (s Suspension) Resumption() map[string]any {
	change := s.Change(false)
	Annotate(change, map[string]any{SuspendReasonAnnotation: nil, SuspendedByAnnotation: nil, SuspendedUntilAnnotation: nil})
	return change
}

// SuspensionReason describes a suspension with its reason, user and expiration time, for example
// "release freeze (by jane, until 2026-12-01T08:00:00Z)". It returns "" if no reason is recorded.
// It also returns "" if the object is not suspended, because only flux resume removes the
// annotations.
func SuspensionReason(o Object) string {
	k, ok := FindKind(Path{"kind"}.String(o))
	if ok && !k.Suspension.Is(o) {
		return ""
	}
	var details []string
	for _, detail := range []struct{ word, key string }{{"by ", SuspendedByAnnotation}, {"until ", SuspendedUntilAnnotation}} {
		if text := Annotation(o, detail.key); text != "" {
			details = append(details, detail.word+text)
		}
	}
	reason, more := Annotation(o, SuspendReasonAnnotation), strings.Join(details, ", ")
	if reason != "" && more != "" {
		return reason + " (" + more + ")"
	}
	return reason + more
}

// Expired reports whether the suspension of an object has an expiration time that has passed. It
// returns an error if the time is invalid.
func (s Suspension) Expired(o Object, now time.Time) (bool, error) {
	text := Annotation(o, SuspendedUntilAnnotation)
	if text == "" || !s.Is(o) {
		return false, nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return false, fmt.Errorf("annotation %s is not an RFC 3339 time: %q", SuspendedUntilAnnotation, text)
	}
	return !until.After(now), nil
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
