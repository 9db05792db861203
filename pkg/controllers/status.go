package controllers

import (
	"slices"
	"strings"
)

// Condition is a status condition of an object, as KEP-1623 defines it.
type Condition struct {
	Type, Status, Reason, Message, LastTransitionTime string
	ObservedGeneration                                int64
}

// FindCondition returns the condition of a type, compared without regard to case.
func FindCondition(o Object, typ string) (Condition, bool) {
	list, _ := Path{"status.conditions"}.Lookup(o)
	items, _ := list.([]any)
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string { return Path{name}.String(m) }
		if strings.EqualFold(field("type"), typ) {
			return Condition{
				Type: field("type"), Status: field("status"), Reason: field("reason"), Message: field("message"),
				LastTransitionTime: field("lastTransitionTime"), ObservedGeneration: integer(m["observedGeneration"]),
			}, true
		}
	}
	return Condition{}, false
}

// ConditionTypes returns the types of conditions that controllers write.
func ConditionTypes() []string {
	return []string{
		"Ready", "Reconciling", "Stalled", "Healthy", "Released", "TestSuccess", "Remediated", "Drifted",
		"ArtifactInStorage", "ArtifactOutdated", "BuildFailed", "FetchFailed", "IncludeUnavailable", "SourceVerified", "StorageOperationFailed",
	}
}

// Readiness is how ready an object is and why.
type Readiness struct {
	// Status is "True", "False" or "Unknown".
	Status string
	// Reason is the condition's, "" where the object has no such condition.
	Reason string
	// Message is for people; digests in it are whole.
	Message string
}

// Ready reads how ready an object is. An object that no controller has
// touched is not ready, unless its kind has no status.
func (k Kind) Ready(o Object) Readiness {
	if k.Static != nil && k.Static(o) {
		return Readiness{Status: "True", Message: k.staticNoun() + " is Ready"}
	}
	if c, ok := FindCondition(o, "Ready"); ok {
		return Readiness{c.Status, c.Reason, c.Message}
	}
	return Readiness{Status: "False", Message: "waiting to be reconciled"}
}

// staticNoun spells the kind as messages do: HelmRepository is a Helm repository.
func (k Kind) staticNoun() string {
	if k.Kind == "HelmRepository" {
		return "Helm repository"
	}
	return k.Kind
}

// Observed tells whether the status speaks of the present generation of the
// spec. Kinds without status.observedGeneration say it in the Ready condition.
func Observed(o Object) bool {
	generation, _ := Path{"metadata.generation"}.Lookup(o)
	observed, ok := Path{"status.observedGeneration"}.Lookup(o)
	if !ok {
		c, found := FindCondition(o, "Ready")
		return found && (c.ObservedGeneration == 0 || c.ObservedGeneration >= integer(generation))
	}
	return integer(observed) >= integer(generation)
}

// Stalled returns the Stalled condition's message when the controller has
// given up until something changes.
func Stalled(o Object) (string, bool) {
	c, ok := FindCondition(o, "Stalled")
	return c.Message, ok && c.Status == "True"
}

func integer(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	default:
		return 0
	}
}

func noConditions(o Object) bool {
	_, ok := FindCondition(o, "Ready")
	return !ok
}

// Settled tells whether the controller has come to an end with the
// reconciliation request of that token: it has answered it, is not at work any
// more, and says whether the object is ready. A failed object may be retried
// later, and its status may speak of the generation only in the condition.
func (k Kind) Settled(o Object, token string) bool {
	if (Path{"status.lastHandledReconcileAt"}).String(o) != token {
		return false
	}
	if c, ok := FindCondition(o, "Reconciling"); ok && c.Status == "True" && c.Reason == "Progressing" {
		return false
	}
	ready := k.Ready(o)
	switch ready.Status {
	case "True":
		return Observed(o)
	case "False":
		return ready.Reason != "" // without a condition it has only just begun
	default:
		return false
	}
}

// pending are the reasons of a Ready condition that is False only until
// something else is ready: the controller goes on by itself.
var pending = []string{"DependencyNotReady", "SourceNotReady"}

// Pending tells whether an object waits for something else.
func (k Kind) Pending(o Object) bool {
	return slices.Contains(pending, k.Ready(o).Reason)
}

// Finished tells whether the controller has come to an end with the present
// generation of the spec: it is ready, or has failed for a reason of its own.
func (k Kind) Finished(o Object) bool {
	if k.Static != nil && k.Static(o) {
		return true
	}
	if c, ok := FindCondition(o, "Reconciling"); ok && c.Status == "True" && c.Reason == "Progressing" {
		return false
	}
	switch k.Ready(o).Status {
	case "True":
		return Observed(o)
	case "False":
		// A failure leaves status.observedGeneration at what was reached last.
		c, ok := FindCondition(o, "Ready")
		generation, _ := Path{"metadata.generation"}.Lookup(o)
		return ok && !k.Pending(o) && (Observed(o) || c.ObservedGeneration >= integer(generation))
	default:
		return false
	}
}
