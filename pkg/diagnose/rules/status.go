package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
)

// upstreamReasons lists the reasons with which controllers report that an object waits for another.
var upstreamReasons = []string{
	"ArtifactFailed", "DependencyNotReady", "SourceNotReady", "SourceNotFound", "SourceUnavailable", "GitRepositoryNotAvailable", "NoSourceArtifact",
	"HelmChartNotReady", "IncludeUnavailable", "SourceFetchFailed", "Progressing", "ProgressingWithRetry", "",
}

// Status returns the finding for an object that is not ready. waits reports whether it may wait for another object that is the
// root cause.
func (s Subject) Status() (f Finding, waits bool) {
	if f, ok := s.progress(); ok {
		return f, true
	}
	if slices.Contains(upstreamReasons, s.Ready.Reason) || missesFlux(s) {
		f := Finding{Object: s.ID(), Code: "waiting", Message: failure.OneLine(s.Ready.Message), Retry: s.Again(), Since: s.since("Ready")}
		if s.Failure().Type != "" { // it has failed and is not just waiting for an artifact
			f.Since = time.Time{}
		}
		return f, true
	}
	found, classified := s.Classify()
	switch {
	case controllers.RetriesExhausted(s.Object):
		return s.exhausted(found.Finding, classified), false
	case classified:
		return found.Finding, found.Upstream
	default:
		return Finding{Object: s.ID(), Code: "not-ready", Message: ConditionText(s.Ready), Fixes: checks(s), Retry: s.Again()}, false
	}
}

// checks returns the remedies for a failure without a rule: the subject of its message, and the logs.
func checks(s Subject) []string {
	logs := Logs(s.ID())
	if name := s.field(s.Failed().Message); name != "" {
		return []string{"check " + name + " of " + s.String(), logs}
	}
	return []string{logs}
}

// missesFlux reports whether the failure is a missing Flux object.
func missesFlux(s Subject) bool {
	f := s.Failure()
	_, ofFlux := controllers.KindOf(f.Named.Group, f.Named.Kind)
	return f.Type == failure.NotFound && ofFlux
}

// ConditionText returns the reason and message of a condition in one line.
func ConditionText(r controllers.Readiness) string { return failure.Join(r.Reason, r.Message) }

// exhausted returns the finding for a release without further retries: the failure, with the exhausted retries as a detail.
func (s Subject) exhausted(f Finding, classified bool) Finding {
	failed := s.Failed()
	if classified {
		f.Details = append(f.Details, "retries exhausted: "+failure.OneLine(failed.Message))
	} else {
		f = Finding{Object: s.ID(), Code: "retries-exhausted", Message: "retries exhausted: " + ConditionText(failed), Fixes: checks(s)}
	}
	f.Retry = s.Command("reconcile", "--with-source", "--reset") + " # resets the failure counts and retries"
	return f
}

// progress returns the finding for an object that is neither ready nor failed, and false for other objects.
func (s Subject) progress() (Finding, bool) {
	f := Finding{Object: s.ID(), Code: "unreconciled", Fixes: []string{Logs(s.ID())}, Retry: s.Command("reconcile")}
	switch {
	case s.Ready.Reason == "" && s.Ready.Status != "True":
		f.Message, f.Since = "not reconciled yet", Moment(s.Text("metadata.creationTimestamp"))
	case s.Ready.Status == "True": // it refers to an earlier generation
		f.Message, f.Since = "latest change not reconciled yet", managedfields.Changed(s.Object)
	case s.Ready.Status == "Unknown":
		message := s.Ready.Message
		if doing, ok := controllers.FindCondition(s.Object, "Reconciling"); ok && doing.Message != "" {
			message = doing.Message
		}
		f = Finding{Object: f.Object, Code: "progressing", Message: "reconciling: " + failure.OneLine(failure.WithoutTempDirs(message)), Since: s.since("Reconciling", "Ready"), Within: max(waitingTime(message), controllers.AnnotatedTimeout(s.Kind, s.Object))}
	default:
		return Finding{}, false
	}
	if last := s.lastFailure(); last != "" {
		f.Since = time.Time{} // a retry is not a new reconciliation
		f.Details = append(f.Details, last)
	}
	return f, true
}

// announcedTime matches the time for which a controller waits for health checks or an action of Helm. Messages about fetching and
// building also contain a timeout, but do not announce a wait.
var announcedTime = lazy.Regexp(`^(?i:running) (?:health checks|'[a-z]+' action) .*?with (?:a )?timeout of ([0-9hms.]+)`)

// waitingTime returns the time for which a controller waits according to its message, or zero.
func waitingTime(message string) time.Duration {
	m := announcedTime().FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(m[1])
	if err != nil {
		return 0
	}
	return d
}

// Recovered returns the finding for a failed health check whose objects are ready now.
func (s Subject) Recovered(f Finding) Finding {
	f.Code = "resolved"
	f.Message = "the health check failed" + prefixed(" at ", failedSince(s)) + ", and its objects are ready now"
	f.Fixes = []string{"if they regularly need longer, raise .spec.timeout of " + s.String()}
	f.Details = append(f.Details, ConditionText(s.Failed()))
	f.Retry = s.Command("reconcile")
	return f
}

// failedSince returns the time of the failure, or "".
func failedSince(s Subject) string {
	if at := s.since("Ready"); !at.IsZero() {
		return at.Format(time.RFC3339)
	}
	return ""
}

// StateSince returns the time since which an object has had its current Ready condition and message, or zero.
func StateSince(o controllers.Object) time.Time {
	c, _ := controllers.FindCondition(o, "Ready")
	return Moment(c.LastTransitionTime)
}

// since returns the newest transition time of the conditions.
func (s Subject) since(types ...string) time.Time {
	var newest time.Time
	for _, typ := range types {
		c, ok := controllers.FindCondition(s.Object, typ)
		if at := Moment(c.LastTransitionTime); ok && at.After(newest) {
			newest = at
		}
	}
	return newest
}

// attempts lists the conditions that report a failed attempt while the controller retries.
var attempts = []struct{ typ, status string }{{"FetchFailed", "True"}, {"StorageOperationFailed", "True"}, {"Released", "False"}, {"TestSuccess", "False"}, {"Remediated", "False"}}

// lastFailure returns the failure of the previous attempt. It is "" if the attempt succeeded, was for another revision, or only
// waited for another object.
func (s Subject) lastFailure() string {
	for _, a := range attempts {
		if c, ok := controllers.FindCondition(s.Object, a.typ); ok && c.Status == a.status && !slices.Contains(upstreamReasons, c.Reason) {
			return "the last attempt failed: " + failure.OneLine(failure.WithoutTempDirs(failure.Join(c.Reason, c.Message)))
		}
	}
	status := s.Text("status.history[0].lastReconciledStatus")
	attempted := s.Text("status.lastAttemptedRevision")
	applied := attempted == s.Text("status.lastAppliedRevision") && (attempted != "" || s.Kind.Attempts != nil)
	if slices.Contains(upstreamReasons, status) || status == "ReconciliationSucceeded" || applied {
		return ""
	}
	return fmt.Sprintf("the last attempt ended with %s at %s", status, s.Text("status.history[0].lastReconciled"))
}
