package diagnose

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// hooks returns the causes of a failed release from pods that no inventory has:
// pods of tests and of hook Jobs, and events of pods that the remediation has
// deleted.
func (s *snapshot) hooks(ctx context.Context, sub subject) []Trouble {
	failed := sub.attempt()
	var targets []controllers.Target
	namespace := sub.releaseNamespace()
	if failed.Reason == "TestFailed" {
		for _, name := range sub.failedTests() {
			targets = append(targets, controllers.Target{Kind: "Pod", Namespace: namespace, Name: name}, controllers.Target{Kind: "Job", Namespace: namespace, Name: name})
		}
	}
	if len(targets) > 0 {
		if troubles, _ := s.podReader.workloads(ctx, targets); len(troubles) > 0 {
			return troubles
		}
	}
	if failed != sub.ready { // the remediation has deleted the failed pods
		for _, t := range s.workloadsOf(sub) {
			if hasPods(t) {
				targets = append(targets, key(t))
			}
		}
	}
	if len(targets) == 0 {
		return nil
	}
	return s.podEvents(ctx, namespace, targets, sub.lastAttempt())
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

// podEvents returns, for each workload, the most detailed warning about its
// deleted pods shortly before the failure.
func (s *snapshot) podEvents(ctx context.Context, namespace string, targets []controllers.Target, failed time.Time) []Trouble {
	found := map[controllers.Target]Trouble{}
	selection := kube.Selection{Namespace: namespace, Fields: "involvedObject.kind=Pod,type=Warning", Without: []string{"metadata.managedFields"}}
	_, err := s.Client.List(ctx, resource(corev1.SchemeGroupVersion, "Event"), selection, func(o controllers.Object) error {
		pod, e := controllers.Path{"involvedObject.name"}.String(o), eventOf(o)
		if failed.Sub(e.At) > releaseEvidence || e.At.After(failed.Add(time.Minute)) {
			return nil
		}
		for _, t := range targets {
			message := fmt.Sprintf("pod %s, since deleted: %s", pod, e.Text)
			if (pod == t.Name || strings.HasPrefix(pod, t.Name+"-")) && len(message) > len(found[t].Message) {
				found[t] = Trouble{t.String(), Cause{Message: message}}
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	var troubles []Trouble
	for _, t := range targets {
		if trouble, ok := found[t]; ok {
			troubles = append(troubles, trouble)
		}
	}
	return troubles
}

// releaseEvidence is the maximum time between an event of a pod and the failure
// of the release that it explains.
const releaseEvidence = 10 * time.Minute
