package tree

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Schedule contains the reconciliation times of an object.
type Schedule struct {
	// Interval is the time between reconciliations, and Retry the time before a failed reconciliation
	// is retried.
	Interval, Retry time.Duration
	// Last is the last known reconciliation.
	Last HistoryEntry
	// Current reports whether Last is the latest reconciliation: failures before
	// the apply are not in the history.
	Current bool
	// Failed is the last failed reconciliation.
	Failed HistoryEntry
	// Next is the time of the next reconciliation, zero if unknown or suspended.
	Next time.Time
}

// Schedule returns the times from the spec and the history.
func (l Link) Schedule() Schedule {
	s := Schedule{Interval: controllers.IntervalOf(l.Kind, l.Live), Retry: controllers.RetryIntervalOf(l.Live)}
	for _, run := range l.History() {
		if run.At.After(s.Last.At) {
			s.Last = run
		}
		if !run.Succeeded && run.At.After(s.Failed.At) {
			s.Failed = run
		}
	}
	wait := s.Interval
	if !s.Last.Succeeded && s.Retry > 0 {
		wait = s.Retry
	}
	s.Current = !s.Last.At.IsZero() && s.Last.Succeeded == (l.Kind.Ready(l.Live).Status == "True")
	if l.Kind.Recorded && s.Current && wait > 0 && !l.Kind.Suspension.Is(l.Live) && !l.Kind.Pending(l.Live) {
		s.Next = s.Last.At.Add(wait)
	}
	return s
}
