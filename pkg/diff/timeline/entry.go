// Package timeline describes how the objects of a cluster change after a push: as package testrun observes
// it, and as Predict derives it from two builds.
package timeline

import (
	"fmt"
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The actions of a timeline.
const (
	Created   = "created"
	Changed   = "changed"
	Restarted = "restarted"
	Recreated = "recreated"
	Deleted   = "deleted"
	Failed    = "failed"
	Released  = "released"
	// Uninstalled is the remediation of a failed release.
	Uninstalled = "uninstalled"
)

// Interrupted is the message of an object that is deleted before it is created again.
const Interrupted = "it did not exist in between"

// Entry is a change of an object.
type Entry struct {
	// After is the time since the push, if the change was observed.
	After float64 `json:"afterSeconds,omitempty"`
	// Step is the position in the order, if the change is predicted. The changes of a step are made in any
	// order.
	Step   int            `json:"step,omitempty"`
	Object controllers.ID `json:"object"`
	Action string         `json:"action"`
	// Message is the failure of a Flux object, the release of a HelmRelease, or the effect of a change.
	Message string `json:"message,omitempty"`
	// Gap is the time during which a recreated object did not exist.
	Gap float64 `json:"gapSeconds,omitempty"`
	// Owners lists the previous and the new owner, if they differ.
	Owners []controllers.ID `json:"owners,omitempty"`
	// By is the Kustomization or HelmRelease that makes a predicted change.
	By *controllers.ID `json:"by,omitempty"`
	// Uncertain is true if the prediction depends on the cluster, as the message explains.
	Uncertain bool `json:"uncertain,omitempty"`
}

// Disruptive reports whether an entry is a restart, a recreation, a deletion or a failure.
func (e Entry) Disruptive() bool {
	return slices.Contains([]string{Restarted, Recreated, Deleted, Failed, Uninstalled}, e.Action)
}

// String returns the entry as a line.
func (e Entry) String() string {
	at := fmt.Sprintf("%5.1fs", e.After)
	if e.Step > 0 {
		at = fmt.Sprintf("%6d", e.Step)
	}
	return fmt.Sprintf("%s  %-9s  %s", at, e.Action, e.Object) + e.Consequence()
}

// Consequence returns the text that follows the object of an entry.
func (e Entry) Consequence() string {
	text := ""
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Gap > 0 {
		text += fmt.Sprintf(" for %.1fs", e.Gap)
	}
	if e.Action == Restarted {
		text += ": its pod template changes"
	}
	if len(e.Owners) > 0 {
		text += " (moves from " + e.Owners[0].String() + " to " + e.Owners[1].String() + ")"
	}
	return text
}

// Template returns the pod template of a workload, or nil for other objects.
func Template(o controllers.Object) any {
	t, _ := (controllers.Path{"spec.template"}).Lookup(o)
	if _, pods := (controllers.Path{"spec.template.spec.containers"}).Lookup(o); !pods {
		return nil
	}
	return t
}
