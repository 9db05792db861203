package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/pkg/bootstrap"
)

// errJudged ends the wait of a run that has judged a status without success.
var errJudged = errors.New("judged")

// conditions replaces the Ready condition of a status, and adds a Reconciling
// condition whose message a run shows if it continues to wait. The message has the
// request that the status answers.
func conditions(ready, reason string) func(map[string]any) {
	return func(status map[string]any) {
		all := status["conditions"].([]any)
		condition := all[0].(map[string]any)
		condition["status"], condition["reason"] = ready, reason
		status["conditions"] = append(all, map[string]any{
			"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry", "message": fmt.Sprintf("answer to %v", status["lastHandledReconcileAt"]),
			"observedGeneration": condition["observedGeneration"], "lastTransitionTime": "2026-11-01T10:00:00Z",
		})
	}
}

// unready: a second run succeeds only if the objects are ready at the pushed
// revision, whatever their status was before.
func unready(w *world) {
	w.mustRun(w.plan())
	before, runs := "", 0
	stalled := func(status map[string]any) {
		status["conditions"] = append(status["conditions"].([]any), map[string]any{
			"type": "Stalled", "status": "True", "reason": "InvalidSpec", "message": "simulated", "lastTransitionTime": "2026-11-01T10:00:00Z",
			"observedGeneration": status["observedGeneration"],
		})
	}
	for name, test := range map[string]struct {
		kind string
		edit func(status map[string]any)
		// want is the end of the error, "" for a run that continues to wait.
		want string
	}{
		"False":              {"Kustomization", conditions("False", "BuildFailed"), "is not ready: BuildFailed: simulated"},
		"temporary":          {"Kustomization", conditions("False", "ArtifactFailed"), ""},
		"Unknown":            {"Kustomization", conditions("Unknown", "Progressing"), ""},
		"stalled":            {"Kustomization", func(s map[string]any) { conditions("False", "InvalidSpec")(s); stalled(s) }, "is not ready: InvalidSpec: simulated"},
		"earlier revision":   {"Kustomization", func(s map[string]any) { conditions("True", "Succeeded")(s); s["lastAppliedRevision"] = before }, ""},
		"earlier generation": {"Kustomization", func(s map[string]any) { conditions("True", "Succeeded")(s); s["observedGeneration"] = 0 }, ""},
		"source, False":      {"GitRepository", conditions("False", "GitOperationFailed"), "is not ready: GitOperationFailed: simulated"},
		"source, Unknown":    {"GitRepository", conditions("Unknown", "Progressing"), ""},
		"source, earlier one": {"GitRepository", func(s map[string]any) {
			conditions("True", "Succeeded")(s)
			s["artifact"].(map[string]any)["revision"] = before
		}, ""},
	} {
		before = w.revision()
		plan := w.plan()
		plan.Sync.Interval = time.Duration(len(w.log())) * time.Minute // a commit for each case
		plan.Now = func() time.Time { return time.Unix(1793527200+int64(runs), 0) }
		w.edit(test.kind, test.edit)
		for _, committed := range []string{"with a commit", "again, without a commit"} {
			runs++
			err := w.runUntilJudged(plan)
			if test.want == "" && !errors.Is(err, errJudged) || test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
				w.t.Errorf("%s, %s: %v", name, committed, err)
			}
		}
		runs++
		w.edit("", nil)
		w.mustRun(plan)
	}
}

// runUntilJudged bootstraps until the run has judged the answer to its request
// without success, and returns errJudged then.
func (w *world) runUntilJudged(plan bootstrap.Plan) error {
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	answer := "answer to " + plan.Now().Format(time.RFC3339Nano)
	p := &progress{seen: func(message string) {
		if strings.HasSuffix(message, answer) {
			cancel(errJudged)
		}
	}}
	_, err := bootstrap.Run(ctx, rest.CopyConfig(w.cluster.Client.Config), plan, p)
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}
