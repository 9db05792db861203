package rules

import (
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestIsProgress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		finding Finding
		want    bool
	}{
		"reconciling for seconds":  {Finding{Code: "progressing", Since: ago(10 * time.Second)}, true},
		"reconciling for minutes":  {Finding{Code: "progressing", Since: ago(2 * time.Minute)}, false},
		"reconciling, unknown how": {Finding{Code: "progressing"}, false},
		"deleted a moment ago":     {Finding{Code: "deleting", Since: ago(10 * time.Second)}, true},
		"being deleted for long":   {Finding{Code: "deleting", Since: ago(40 * time.Second)}, false},
		"failed a moment ago":      {Finding{Code: "not-ready", Since: ago(time.Second)}, false},
		"drifted a moment ago":     {Finding{Code: "drift", Since: ago(time.Second)}, false},
	} {
		if got := c.finding.IsProgress(now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	k, _ := controllers.FindKind("Kustomization")
	condition := func(typ, status, reason string) map[string]any {
		return map[string]any{"type": typ, "status": status, "reason": reason, "message": "running in /tmp/kustomization-1/deep", "lastTransitionTime": "2026-11-21T10:00:00Z"}
	}
	object := func(status map[string]any, conditions ...any) controllers.Object {
		status["conditions"] = conditions
		return controllers.Object{"metadata": map[string]any{"name": "app", "creationTimestamp": "2026-11-21T09:59:00Z"}, "status": status}
	}
	for name, c := range map[string]struct {
		object         controllers.Object
		code, since    string
		retries, other bool
	}{
		"new":         {object: object(map[string]any{}), code: "unreconciled", since: "2026-11-21T09:59:00Z"},
		"reconciling": {object: object(map[string]any{}, condition("Ready", "Unknown", "Progressing"), condition("Reconciling", "True", "Progressing")), code: "progressing", since: "2026-11-21T10:00:00Z"},
		"failed":      {object: object(map[string]any{}, condition("Ready", "False", "BuildFailed")), other: true},
		"retried": {object: object(map[string]any{
			"lastAttemptedRevision": "b", "lastAppliedRevision": "a", "history": []any{map[string]any{"lastReconciledStatus": "HealthCheckFailed", "lastReconciled": "2026-11-21T09:00:00Z"}},
		}, condition("Ready", "Unknown", "Progressing")), code: "progressing", retries: true},
		"a chart that waited for its source":     {object: object(map[string]any{}, condition("Ready", "Unknown", "Progressing"), condition("FetchFailed", "True", "NoSourceArtifact")), code: "progressing", since: "2026-11-21T10:00:00Z"},
		"a chart whose source could not be read": {object: object(map[string]any{}, condition("Ready", "Unknown", "Progressing"), condition("FetchFailed", "True", "ChartPullError")), code: "progressing", retries: true},
		"retried source":                         {object: object(map[string]any{}, condition("Ready", "Unknown", "Progressing"), condition("FetchFailed", "True", "GitOperationFailed")), code: "progressing", retries: true},
	} {
		f, ok := NewSubject(k, c.object, "").progress()
		if !ok {
			if !c.other {
				t.Errorf("%s: no finding", name)
			}
			continue
		}
		if c.other || f.Code != c.code || f.Since.IsZero() != c.retries || c.since != "" && f.Since.Format(time.RFC3339) != c.since || len(f.Details) > 0 != c.retries {
			t.Errorf("%s: %+v", name, f)
		}
		if c.code == "progressing" && f.Message != "reconciling: running in deep" {
			t.Errorf("%s: %q", name, f.Message)
		}
	}
}

// TestRepeat checks that a release whose failed attempt is repeated has failed, unless something has
// changed since.
func TestRepeat(t *testing.T) {
	t.Parallel()
	release := func(generation, attempted, failures int64, doing string) controllers.Object {
		return controllers.Object{
			"metadata": map[string]any{"name": "app", "generation": generation},
			"status": map[string]any{"lastAttemptedGeneration": attempted, "failures": failures, "conditions": []any{
				map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing", "message": doing},
				map[string]any{"type": "Ready", "status": "Unknown", "reason": "Progressing", "message": doing},
				map[string]any{"type": "Released", "status": "False", "reason": "UpgradeFailed", "message": "greeting is required"},
			}},
		}
	}
	upgrade := "Running 'upgrade' action with timeout of 5m0s"
	hr, _ := controllers.FindKind("HelmRelease")
	for name, c := range map[string]struct {
		object controllers.Object
		reason string
	}{
		"repeated":                          {release(2, 2, 1, upgrade), "UpgradeFailed"},
		"the spec has changed":              {release(3, 2, 1, upgrade), "Progressing"},
		"the chart or the values changed":   {release(2, 2, 0, upgrade), "Progressing"},
		"they may have changed: no attempt": {release(2, 2, 1, "Fulfilling prerequisites"), "Progressing"},
	} {
		s := NewSubject(hr, c.object, "")
		if s.Ready.Reason != c.reason || (s.Attempting != "") != (c.reason == "UpgradeFailed") {
			t.Errorf("%s: %+v, attempting %q", name, s.Ready, s.Attempting)
		}
		if f, ok := s.progress(); ok == (c.reason == "UpgradeFailed") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestWaitingTime checks which messages announce that a controller waits.
func TestWaitingTime(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]time.Duration{
		"Running health checks for revision main@sha1:6f9a1b2c with a timeout of 9m30s": 9*time.Minute + 30*time.Second,
		"Running 'install' action with timeout of 5m0s":                                 5 * time.Minute,
		"Fetching manifests for revision main@sha1:6f9a1b2c with a timeout of 9m30s":    0,
		"Building manifests for revision main@sha1:6f9a1b2c with a timeout of 9m30s":    0,
		"Reconciliation in progress":                                                    0,
		"health check failed after Running health checks with a timeout of 9m30s":       0,
		"Running 'install' action with timeout of soon":                                 0,
	} {
		if got := waitingTime(message); got != want {
			t.Errorf("%s: %s instead of %s", message, got, want)
		}
	}
}
