package rules

import (
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Finding is a problem of an object.
type Finding struct {
	// Object is the object with the problem.
	Object controllers.ID
	// Code identifies the type of problem, such as "source-authentication".
	Code string
	// Message describes the problem in one line.
	Message string
	// Details holds quoted conditions, events and logs.
	Details []string
	// Fixes lists what to do. A fix with a command is the command itself or ends with ": " and the command, so that users and
	// programs can copy it. Placeholders are in angle brackets.
	Fixes []string
	// Retry is the command that reconciles the object after the fix, or "".
	Retry string
	// Cycle lists the objects of a circular dependency.
	Cycle []controllers.ID
	// Since is the start of the problem, or zero if it is unknown. Within is the time that the controller waits from then on, or
	// zero if it is unknown.
	Since  time.Time
	Within time.Duration
}

// Remedies returns the fixes and the retry.
func (f Finding) Remedies() []string {
	if f.Retry == "" {
		return f.Fixes
	}
	return append(slices.Clip(f.Fixes), f.Retry)
}

const (
	// reconciliationGrace is the time that a reconciliation or the start of a controller may take before it is a problem, unless
	// the controller reports that it waits longer.
	reconciliationGrace = time.Minute
	// deletionGrace is the time that a deletion may take before it is reported: controllers need a moment to clean up.
	deletionGrace = 30 * time.Second
)

// IsProgress reports whether the finding is a reconciliation or deletion that is still within its time limit.
func (f Finding) IsProgress(now time.Time) bool {
	var grace time.Duration
	switch f.Code {
	case "progressing", "unreconciled", "waiting", "controller-starting":
		grace = max(reconciliationGrace, f.Within)
	case "deleting":
		grace = deletionGrace
	}
	return !f.Since.IsZero() && now.Sub(f.Since) < grace
}
