package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// progress returns the finding for an object that is neither ready nor failed, and nil for other
// objects.
func progress(sub subject) *Finding {
	o := sub.object
	f := &Finding{Object: sub.kind.IDOf(o), Code: "unreconciled", Remedies: []string{sub.logs(), sub.command("reconcile")}}
	switch {
	case sub.ready.Reason == "" && sub.ready.Status != "True":
		f.Message, f.Since = "not reconciled yet", moment(controllers.Path{"metadata.creationTimestamp"}.String(o))
	case sub.ready.Status == "True": // it refers to an earlier generation
		f.Message, f.Since = "latest change not reconciled yet", specChanged(o)
	case sub.ready.Status == "Unknown":
		message := sub.ready.Message
		if doing, ok := controllers.FindCondition(o, "Reconciling"); ok && doing.Message != "" {
			message = doing.Message
		}
		f.Code, f.Message, f.Since = "progressing", "reconciling: "+oneLine(WithoutFolders(message)), sub.since("Reconciling", "Ready")
		f.Remedies = nil
	default:
		return nil
	}
	if failure := sub.lastFailure(); failure != "" {
		f.Since = time.Time{} // a retry is not a new reconciliation
		f.Details = append(f.Details, failure)
	}
	return f
}

// since returns the newest transition time of the conditions.
func (s subject) since(types ...string) time.Time {
	var newest time.Time
	for _, typ := range types {
		c, ok := controllers.FindCondition(s.object, typ)
		if at := moment(c.LastTransitionTime); ok && at.After(newest) {
			newest = at
		}
	}
	return newest
}

// failures lists the conditions that report a failed attempt while the controller retries.
var failures = []struct{ typ, status string }{{"FetchFailed", "True"}, {"StorageOperationFailed", "True"}, {"Released", "False"}, {"TestSuccess", "False"}, {"Remediated", "False"}}

// lastFailure returns the failure of the previous attempt. It is "" if the attempt succeeded, was
// for another revision, or only waited for another object.
func (s subject) lastFailure() string {
	for _, f := range failures {
		if c, ok := controllers.FindCondition(s.object, f.typ); ok && c.Status == f.status && !slices.Contains(upstream, c.Reason) {
			return "the last attempt failed: " + oneLine(WithoutFolders(join(c.Reason, c.Message)))
		}
	}
	text := func(field string) string { return s.text("status.history[0]." + field) }
	status := text("lastReconciledStatus")
	if slices.Contains(upstream, status) || status == "ReconciliationSucceeded" || s.text("status.lastAttemptedRevision") == s.text("status.lastAppliedRevision") {
		return ""
	}
	return fmt.Sprintf("the last attempt ended with %s at %s", status, text("lastReconciled"))
}

// deleting returns the finding for a Flux object that is being deleted.
func (s *installation) deleting(sub subject) *Finding {
	f, _ := s.blockedDeletion(sub.id(), sub.object)
	return &f
}
