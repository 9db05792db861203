package diagnose

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

// hooks returns the causes of a failed release from pods that no inventory has:
// pods of tests and of hook Jobs, and events of pods that the remediation has
// deleted.
func (w *workloads) hooks(ctx context.Context, sub subject) []Trouble {
	failed := sub.attempt()
	var targets []controllers.ID
	namespace := sub.releaseNamespace()
	if failed.Reason == "TestFailed" {
		for _, name := range sub.failedTests() {
			targets = append(targets, controllers.ID{Kind: "Pod", Namespace: namespace, Name: name}, controllers.ID{Group: batchv1.GroupName, Kind: "Job", Namespace: namespace, Name: name})
		}
	}
	if len(targets) > 0 {
		if troubles, _ := w.troubles(ctx, targets); len(troubles) > 0 {
			return troubles
		}
	}
	if failed != sub.ready { // the remediation has deleted the failed pods
		for _, t := range workloadsOf(sub) {
			if hasPods(t) {
				targets = append(targets, t)
			}
		}
	}
	if len(targets) == 0 {
		return nil
	}
	return w.deleted(ctx, namespace, targets, sub.lastAttempt())
}

// releaseNamespace returns the namespace of the objects of a release.
func (s subject) releaseNamespace() string {
	for _, field := range []string{"status.history[0].namespace", "spec.targetNamespace", "metadata.namespace"} {
		if namespace := s.text(field); namespace != "" {
			return namespace
		}
	}
	return ""
}

// failedTests returns the failed test hooks of the newest tested revision.
func (s subject) failedTests() []string {
	list, _ := controllers.Path{"status.history"}.Lookup(s.object)
	entries, _ := list.([]any)
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		hooks, _ := m["testHooks"].(map[string]any)
		var names []string
		for _, name := range sortedKeys(hooks) {
			hook, _ := hooks[name].(map[string]any)
			if (controllers.Path{"phase"}).String(hook) != "Succeeded" {
				names = append(names, name)
			}
		}
		if len(hooks) > 0 {
			return names
		}
	}
	return nil
}

// lastAttempt returns the time of the failure, zero if unknown.
func (s subject) lastAttempt() time.Time {
	for _, typ := range s.kind.Attempted {
		if c, ok := controllers.FindCondition(s.object, typ); ok && c.Status == "False" {
			return moment(c.LastTransitionTime)
		}
	}
	return time.Time{}
}

// deleted returns the troubles of deleted pods, according to their events.
func (w *workloads) deleted(ctx context.Context, namespace string, targets []controllers.ID, failed time.Time) []Trouble {
	messages, err := w.history.deletedPods(ctx, namespace, targets, failed)
	if err != nil {
		return nil
	}
	var troubles []Trouble
	for _, t := range targets {
		if message, ok := messages[t]; ok {
			troubles = append(troubles, Trouble{t.String(), Cause{Message: message}})
		}
	}
	return troubles
}
