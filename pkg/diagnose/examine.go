package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/inventory"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/tree"
)

const (
	// examinedAtOnce is the maximum number of root causes to examine in parallel.
	examinedAtOnce = 8
	// eventsShown is the number of events to print for a root cause. recentEvent is the maximum age of an event that explains the
	// current failure.
	eventsShown = 3
	recentEvent = time.Hour
	// eventDelay is the maximum time from an event to the condition that reports the same failure.
	eventDelay = 2 * time.Second
	// canceled is the last part of a controller message about a request that the controller canceled itself because a newer
	// request replaced the reconciliation.
	canceled = "context canceled"
)

// examineAll adds details to root causes. It reports whether a failure may be outdated because its object has no recent events.
func (s *diagnosis) examineAll(ctx context.Context, causes []Cause) (unconfirmed bool) {
	var examining sync.WaitGroup
	old := make([]bool, len(causes))
	slots := make(chan struct{}, examinedAtOnce)
	for i := range causes {
		examining.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			old[i] = s.examine(ctx, causes[i].Root())
		})
	}
	examining.Wait()
	return slices.Contains(old, true)
}

// examine adds to a root cause the details that require further requests: pods that are not ready, the file in the source, recent
// events. Errors are ignored: the finding is valid without them. It reports whether the failure may be outdated because the
// object has no recent events.
func (s *diagnosis) examine(ctx context.Context, root *rules.Finding) (unconfirmed bool) {
	if root.Code == "deleting" && root.Object.Kind == "Namespace" && root.Object.Group == "" {
		inventory.ExplainNamespace(ctx, s.cluster, root, root.Object.Name)
	}
	if _, ofFlux := s.snapshot.Objects[root.Object]; !ofFlux {
		return false
	}
	sub := s.evaluation.subject(root.Object)
	switch root.Code {
	case "namespace-terminating":
		if !controllers.IsRemote(sub.Object) {
			inventory.ExplainNamespace(ctx, s.cluster, root, sub.Failure().Named.Name)
		}
	case "deleting":
		s.findHook(ctx, root, sub)
	}
	ready := failure.OneLine(sub.Ready.Message)
	if sub.Ready.Status == "False" && sub.Ready.Reason != "" && !strings.Contains(root.Message+"\n"+strings.Join(root.Details, "\n"), ready) {
		root.Details = append(root.Details, rules.ConditionText(sub.Ready))
	}
	if sub.Attempting != "" {
		root.Details = append(root.Details, "retry in progress: "+failure.OneLine(sub.Attempting))
	}
	// For pods that are not ready, events report only the timeout.
	if s.findPods(ctx, root, sub) || s.findLogged(ctx, root, sub) {
		return false
	}
	s.compare(ctx, root, sub)
	events, err := s.cluster.Events(ctx, root.Object)
	events = observe.Latest(events, eventsShown)
	if root.Code != "missing-reference" {
		s.addEvents(root, sub, events)
	}
	isRecent := func(e event.Event) bool { return s.config.Now.Sub(e.At) <= recentEvent }
	return err == nil && root.Code != "suspended" && !slices.ContainsFunc(events, isRecent)
}

// findHook adds the problem of the hook Job that blocks the deletion of a release.
func (s *diagnosis) findHook(ctx context.Context, root *rules.Finding, sub rules.Subject) {
	job, is := rules.FailedHook(sub.Kind, sub.Object)
	if !is {
		return
	}
	problems, _ := rollout.Problems(ctx, s.cluster, []controllers.ID{job})
	for _, p := range problems {
		f := workloadFinding(root.Object, p)
		root.Details = append(append(root.Details, p.Name+": "+f.Message), f.Details...)
		root.Fixes = append(f.Fixes, root.Fixes...)
	}
}

// addEvents adds the warnings that may explain the current failure and are not in the finding or the status.
func (s *diagnosis) addEvents(root *rules.Finding, sub rules.Subject, events []event.Event) {
	message := timeless(failure.OneLine(sub.Ready.Message))
	known := timeless(rules.ConditionText(sub.Ready) + "\n" + strings.Join(root.Details, "\n"))
	for _, e := range events {
		text := timeless(observe.EventText(e))
		if e.Type == "Warning" && s.mayExplain(sub, e) && !strings.Contains(known, text) && (message == "" || !strings.Contains(text, message)) {
			root.Details = append(root.Details, fmt.Sprintf("event %s: %s", e.At.UTC().Format("15:04:05"), failure.WithoutTempDirs(observe.EventText(e))))
			known += "\n" + text
		}
	}
}

// mayExplain reports whether an event may explain the current failure: it is recent and newer than the last successful
// reconciliation.
func (s *diagnosis) mayExplain(sub rules.Subject, e event.Event) bool {
	if s.config.Now.Sub(e.At) > recentEvent || strings.HasSuffix(observe.EventText(e), canceled) {
		return false
	}
	if sub.Kind.Release { // a rollback also updates the last success
		return true
	}
	if since := rules.StateSince(sub.Object); !since.IsZero() && sub.Ready.Status == "False" && e.At.Before(since.Add(-eventDelay)) {
		return false // the event is about an earlier state
	}
	return !e.At.Before(tree.Link{Kind: sub.Kind, Live: sub.Object}.Outcome().LastSuccess)
}

// spans matches durations.
var spans = lazy.Regexp(`\b[0-9][0-9.]*(ms|µs|s)\b`)

// timeless removes durations and temporary directories from a message, so that equal failures compare equal.
func timeless(message string) string {
	return spans().ReplaceAllString(failure.WithoutTempDirs(message), "")
}

// findPods reports whether applied workloads are not ready, and makes the first of them the root cause. Exhausted retries are a
// consequence and become a detail.
func (s *diagnosis) findPods(ctx context.Context, root *rules.Finding, sub rules.Subject) bool {
	if sub.Kind.Manager == "" || controllers.IsRemote(sub.Object) || !slices.Contains([]string{"not-ready", "progressing", "retries-exhausted", "health"}, root.Code) {
		return false
	}
	problems, _ := rollout.Problems(ctx, s.cluster, workloadsOf(sub))
	if len(problems) == 0 {
		problems = hookProblems(ctx, s.cluster, sub)
	}
	if len(problems) == 0 {
		return false
	}
	inProgress := root.IsProgress(s.config.Now)
	for _, p := range problems[1:] {
		root.Details = append(root.Details, p.Name+": "+p.Message)
	}
	first := problems[0]
	first.Message = first.Name + ": " + first.Message
	if inProgress && first.Vague { // the rollout is in progress
		root.Details = append(root.Details, first.Message)
		return true
	}
	f := workloadFinding(root.Object, first)
	if root.Code == "retries-exhausted" {
		f.Details = append(f.Details, root.Message)
	}
	root.Details = append(f.Details, root.Details...)
	root.Code, root.Message = f.Code, f.Message
	root.Fixes = append(f.Fixes, fmt.Sprintf("fix %s%s, commit and push", first.Object, s.place(ctx, sub, first.Object)))
	if root.Retry == "" {
		root.Retry = sub.Again()
	}
	return true
}

// place returns where a workload is defined, with a leading " in ": the file in the source of a Kustomization, or the values and the
// chart of a release.
func (s *diagnosis) place(ctx context.Context, sub rules.Subject, workload controllers.ID) string {
	if source, ok := sub.Searched(); ok {
		sub.Live.File = s.fileOf(ctx, sub, source, failure.Failure{Object: failure.Object{Kind: workload.Kind, Group: workload.Group, Namespace: workload.Namespace, Name: workload.Name}})
	}
	if in := rules.Place(sub); in != "" {
		return in
	}
	return " in the source"
}

// workloadFinding returns the finding for a workload that is not ready, with the command for its log.
func workloadFinding(object controllers.ID, p rollout.Problem) rules.Finding {
	f := rules.Finding{Object: object, Code: "health", Message: p.Message, Details: p.LogLines()}
	namespace := p.Object.Namespace
	if command := p.LogCommand(namespace); command != "" {
		f.Fixes = append(f.Fixes, command)
	}
	q := p.Rejection
	switch {
	case q.Type == failure.Quota && rules.Unspecified(q):
		f.Code = "quota"
		f.Fixes = append(f.Fixes, fmt.Sprintf("set the requests and limits that ResourceQuota %s in namespace %s requires, or add a LimitRange with defaults (%s)", q.By, namespace, q.Detail))
	case q.Type == failure.Quota:
		f.Code = "quota"
		f.Fixes = append(f.Fixes,
			fmt.Sprintf("raise the ResourceQuota %s in namespace %s, or reduce the requests of the workload (%s)", q.By, namespace, q.Detail),
			rules.Kubectl(controllers.ID{Kind: "ResourceQuota", Namespace: namespace, Name: q.By}, "describe"))
	case p.Remedy != "":
		f.Fixes = append(f.Fixes, p.Remedy)
	}
	return f
}

// workloadsOf returns the objects whose pods may be the cause: the inventory and the objects that the failure mentions.
func workloadsOf(sub rules.Subject) []controllers.ID {
	objects := controllers.Managed(sub.Object)
	for _, h := range sub.Failure().Objects {
		// Messages do not contain the API group.
		group, ok := rollout.GroupOf(h.Kind)
		if t := (controllers.ID{Group: group, Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}); ok && !slices.Contains(objects, t) {
			objects = append(objects, t)
		}
	}
	return objects
}

// hookProblems returns the causes of a failed release from pods that are not in any inventory: pods of tests and hook Jobs, and
// events of pods that the remediation has deleted.
func hookProblems(ctx context.Context, c *observe.Cluster, sub rules.Subject) []rollout.Problem {
	failed, namespace := sub.Failed(), sub.ReleaseNamespace()
	var objects []controllers.ID
	if failed.Reason == "TestFailed" {
		for _, name := range sub.FailedTests() {
			objects = append(objects, controllers.ID{Kind: "Pod", Namespace: namespace, Name: name}, controllers.ID{Group: batchv1.GroupName, Kind: "Job", Namespace: namespace, Name: name})
		}
	}
	if problems, _ := rollout.Problems(ctx, c, objects); len(problems) > 0 {
		return problems
	}
	if failed != sub.Ready { // the remediation has deleted the failed pods
		objects = append(objects, slices.DeleteFunc(workloadsOf(sub), func(t controllers.ID) bool { return !rollout.IsWorkload(t) })...)
	}
	if len(objects) == 0 {
		return nil
	}
	return rollout.Deleted(ctx, c, namespace, objects, sub.FailedAt())
}
