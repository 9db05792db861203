package status

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// timing is when an object is reconciled.
type timing struct {
	// interval is between two reconciliations, retry the one after a failure.
	interval, retry time.Duration
	// last is the newest one that is known of, and took how long it was.
	last tree.HistoryEntry
	// current says that the object is as last left it: what fails before
	// anything is applied leaves no trace in the history.
	current bool
	// failed is the newest one that failed.
	failed tree.HistoryEntry
	// next is when another one is due; zero where that is not known.
	next time.Time
}

// timingOf reads spec and history. Only a Kustomization's history has every
// reconciliation: that of a HelmRelease has releases, which tell nothing of
// what comes next.
func timingOf(l tree.Link) timing {
	span := func(field string) time.Duration {
		d, err := time.ParseDuration(controllers.Path{field}.String(l.Live))
		if err != nil {
			return 0 // the API server lets no other text in
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
