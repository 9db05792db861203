package status

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// timing has the reconciliation times of an object.
type timing struct {
	// interval is the time between reconciliations, retry the time until the
	// retry of a failure.
	interval, retry time.Duration
	// last is the time of the last known reconciliation, took is its duration.
	last tree.HistoryEntry
	// current reports whether last is the latest reconciliation: failures
	// before the apply are not in the history.
	current bool
	// failed is the time of the last failed reconciliation.
	failed tree.HistoryEntry
	// next is the time of the next reconciliation, or zero if unknown.
	next time.Time
}

// timingOf reads the times from spec and history. Only Kustomizations record
// every reconciliation: the history of a HelmRelease has releases, which do
// not determine the next reconciliation.
func timingOf(l tree.Link) timing {
	span := func(field string) time.Duration {
		d, err := time.ParseDuration(controllers.Path{field}.String(l.Live))
		if err != nil {
			return 0 // the API server rejects other values
		}
		return d
	}
	t := timing{interval: span("spec.interval"), retry: span("spec.retryInterval")}
	for _, run := range l.History() {
		if run.At.After(t.last.At) {
			t.last = run
		}
		if !run.Succeeded && run.At.After(t.failed.At) {
			t.failed = run
		}
	}
	wait := t.interval
	if !t.last.Succeeded && t.retry > 0 {
		wait = t.retry
	}
	t.current = !t.last.At.IsZero() && t.last.Succeeded == (l.Kind.Ready(l.Live).Status == "True")
	if l.Kind.Kind == "Kustomization" && t.current && wait > 0 && !l.Kind.Suspension.Is(l.Live) && !l.Kind.Pending(l.Live) {
		t.next = t.last.At.Add(wait)
	}
	return t
}
