package controllers

import (
	"slices"
	"strings"
)

// Condition is a status condition of an object (KEP-1623).
type Condition struct {
	Type, Status, Reason, Message, LastTransitionTime string
	ObservedGeneration                                int64
}

// FindCondition returns the condition of a type, ignoring case.
func FindCondition(o Object, typ string) (Condition, bool) {
	list, _ := Path{"status.conditions"}.Lookup(o)
	items, _ := list.([]any)
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string {
			value, _ := m[name].(string)
			return value
		}
		if strings.EqualFold(field("type"), typ) {
			return Condition{
				Type: field("type"), Status: field("status"), Reason: field("reason"), Message: field("message"),
				LastTransitionTime: field("lastTransitionTime"), ObservedGeneration: integer(m["observedGeneration"]),
			}, true
		}
	}
	return Condition{}, false
}

// Current reports whether a condition refers to the current generation of its object, or to none.
func (c Condition) Current(o Object) bool {
	generation, _ := Path{"metadata.generation"}.Lookup(o)
	return c.ObservedGeneration == 0 || c.ObservedGeneration >= integer(generation)
}

// ConditionTypes returns the types of conditions that Flux controllers set.
func ConditionTypes() []string {
	return []string{
		"Ready", "Reconciling", "Stalled", "Healthy", "Released", "TestSuccess", "Remediated", "Drifted",
		"ArtifactInStorage", "ArtifactOutdated", "BuildFailed", "FetchFailed", "IncludeUnavailable", "SourceVerified", "StorageOperationFailed",
	}
}

// Readiness is the status, reason and message of the Ready condition.
type Readiness struct {
	// Status is "True", "False" or "Unknown".
	Status string
	// Reason is the reason of the condition, or "" without a Ready condition.
	Reason string
	// Message is the message of the condition, with full digests.
	Message string
}

// Ready returns the readiness of an object. An object without a Ready condition
// is not ready, unless it is Static.
func (k Kind) Ready(o Object) Readiness {
	if k.Static != nil && k.Static(o) {
		return Readiness{Status: "True", Message: k.staticNoun() + " is Ready"}
	}
	if c, ok := FindCondition(o, "Ready"); ok {
		return Readiness{c.Status, c.Reason, c.Message}
	}
	return Readiness{Status: "False", Message: "waiting to be reconciled"}
}

// HasConditions reports whether objects of the kind can have a Ready condition.
func (k Kind) HasConditions() bool { return k.Static == nil || k.Done != "" }

// IsReady reports whether an object is ready at its current generation. The Ready condition may
// refer to an earlier generation.
func (k Kind) IsReady(o Object) bool {
	return k.Ready(o).Status == "True" && (k.Static != nil && k.Static(o) || k.Reported || Observed(o))
}

// staticNoun returns the kind as in messages of Flux: "Helm repository" for
// HelmRepository.
func (k Kind) staticNoun() string {
	if k.Kind == "HelmRepository" {
		return "Helm repository"
	}
	return k.Kind
}

// Observed reports whether the status and its Ready condition refer to the current generation of the
// spec. Each may record the generation: kstatus reads the generation in the status, kubectl wait
// that in the condition, and controllers set the latter first.
func Observed(o Object) bool {
	generation, _ := Path{"metadata.generation"}.Lookup(o)
	c, found := FindCondition(o, "Ready")
	if found && !c.Current(o) {
		return false
	}
	observed, ok := Path{"status.observedGeneration"}.Lookup(o)
	if !ok {
		return found
	}
	return integer(observed) >= integer(generation)
}

// Stalled returns the message of the Stalled condition and reports whether the condition is True.
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

// progressing reports whether a reconciliation is in progress. helm-controller sets Ready to Unknown
// while it installs or upgrades a release. If that fails before a release is stored, for example because
// the chart cannot be rendered, it does not update Reconciling until the next attempt.
func (k Kind) progressing(o Object) bool {
	c, ok := FindCondition(o, "Reconciling")
	if !ok || c.Status != "True" || c.Reason != "Progressing" {
		return false
	}
	return k.Ready(o).Status != "False" || !slices.ContainsFunc(k.Actions, func(action string) bool {
		return strings.HasPrefix(c.Message, "Running '"+action+"' action")
	})
}

// Settled reports whether the controller has finished the reconciliation
// request with the token: it has recorded the token, is not progressing, and
// has set Ready to True or False. A failed object may be retried, and only its
// condition may have the current generation.
func (k Kind) Settled(o Object, token string) bool {
	if (Path{"status.lastHandledReconcileAt"}).String(o) != token {
		return false
	}
	if k.progressing(o) {
		return false
	}
	ready := k.Ready(o)
	switch ready.Status {
	case "True":
		return Observed(o)
	case "False":
		return ready.Reason != "" // without a condition the reconciliation has just started
	default:
		return false
	}
}

// pending lists the reasons of Ready=False that are resolved without intervention once another
// object is ready.
var pending = []string{"DependencyNotReady", "SourceNotReady"}

// Pending reports whether an object waits for another object.
func (k Kind) Pending(o Object) bool {
	return slices.Contains(pending, k.Ready(o).Reason)
}

// Finished reports whether the controller has finished with the current
// generation of the spec: the object is ready, or failed without waiting for
// another object.
func (k Kind) Finished(o Object) bool {
	if k.Static != nil && k.Static(o) {
		return true
	}
	if k.progressing(o) {
		return false
	}
	switch k.Ready(o).Status {
	case "True":
		return Observed(o)
	case "False":
		// A failure does not advance status.observedGeneration.
		c, ok := FindCondition(o, "Ready")
		generation, _ := Path{"metadata.generation"}.Lookup(o)
		return ok && !k.Pending(o) && (Observed(o) || c.ObservedGeneration >= integer(generation))
	default:
		return false
	}
}
