package rollout

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

const (
	// shownPods is the maximum number of pods to report for one workload: they usually fail for the same reason.
	shownPods = 2
	// shownLines is the maximum number of log lines to print.
	shownLines = 5
	// deletedBefore is the maximum time between an event of a pod and the failure of the release that it explains.
	deletedBefore = 10 * time.Minute
)

// groups maps the kinds of workloads to their groups.
var groups = map[string]string{
	"Deployment": appsv1.GroupName, "StatefulSet": appsv1.GroupName, "DaemonSet": appsv1.GroupName, "ReplicaSet": appsv1.GroupName,
	"Job": batchv1.GroupName, "CronJob": batchv1.GroupName, "Pod": corev1.GroupName,
}

// GroupOf returns the group of a kind of workload, and false for other kinds.
func GroupOf(kind string) (group string, ok bool) {
	group, ok = groups[kind]
	return group, ok
}

// IsWorkload reports whether an object is a workload.
func IsWorkload(t controllers.ID) bool {
	group, ok := groups[t.Kind]
	return ok && group == t.Group
}

// DeploymentID returns the ID of a Deployment.
func DeploymentID(namespace, name string) controllers.ID {
	return controllers.ID{Group: appsv1.GroupName, Kind: "Deployment", Namespace: namespace, Name: name}
}

// Problems returns the problems of workloads: their pods that are not ready, and fewer pods than desired. It skips other
// objects, and describes what could not be read. It lists the pods of each namespace and, if the pods are ready, the workloads
// of each kind and the events of rejected pods.
func Problems(ctx context.Context, c *observe.Cluster, objects []controllers.ID) (problems []Problem, unknown []string) {
	byNamespace := map[string][]controllers.ID{}
	for _, t := range objects {
		if IsWorkload(t) {
			byNamespace[t.Namespace] = append(byNamespace[t.Namespace], t)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		found, unread := InNamespace(ctx, c, namespace, byNamespace[namespace])
		problems, unknown = append(problems, found...), append(unknown, unread...)
	}
	return problems, unknown
}

// InNamespace returns the problems of workloads in one namespace.
func InNamespace(ctx context.Context, c *observe.Cluster, namespace string, objects []controllers.ID) ([]Problem, []string) {
	pods, err := c.Pods(ctx, namespace)
	if err != nil {
		return nil, []string{observe.Unread("pods in namespace "+namespace, err)}
	}
	var problems []Problem
	var others []controllers.ID
	for _, t := range objects {
		found := podProblems(t, pods)
		problems = append(problems, found...)
		if len(found) == 0 {
			others = append(others, t)
		}
	}
	explain(ctx, c, namespace, problems)
	explainScheduling(ctx, c, pods, problems)
	missing, unknown := missingPods(ctx, c, namespace, others)
	return append(problems, missing...), unknown
}

// podProblems returns the problems of the pods of one object.
func podProblems(t controllers.ID, pods []*corev1.Pod) (problems []Problem) {
	for _, p := range pods {
		if !Owns(t, p) {
			continue
		}
		found, ok := Pod(p)
		if !ok || len(problems) == shownPods {
			continue
		}
		found.Name, found.Object = t.String(), t
		if t.Kind != "Pod" && !strings.Contains(found.Message, p.Name) {
			found.Name += ", pod " + p.Name
		}
		problems = append(problems, found)
	}
	return problems
}

// Owns reports whether a pod belongs to an object. The ReplicaSet of a Deployment and the Job of a CronJob are named after it,
// so no request is needed.
func Owns(t controllers.ID, p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	switch {
	case t.Kind == "Pod":
		return p.Name == t.Name
	case owner == nil:
		return false
	case t.Kind == "Deployment":
		return owner.Kind == "ReplicaSet" && owner.Name == t.Name+"-"+p.Labels[hash]
	case t.Kind == "CronJob":
		i := strings.LastIndexByte(owner.Name, '-')
		return owner.Kind == "Job" && i > 0 && owner.Name[:i] == t.Name
	default:
		return owner.Kind == t.Kind && owner.Name == t.Name
	}
}

// explain adds the end of the container log, and the last warning about a pod without a definite problem. Errors are ignored:
// the problem is valid without them.
func explain(ctx context.Context, c *observe.Cluster, namespace string, problems []Problem) {
	var warnings map[controllers.ID]event.Event
	for i := range problems {
		p := &problems[i]
		if p.container != "" {
			p.Log = log(ctx, c, namespace, *p)
		}
		if !p.Vague || p.pod == "" {
			continue
		}
		if warnings == nil {
			warnings, _ = c.NewestEvents(ctx, namespace, "type=Warning")
		}
		if e, ok := warnings[controllers.ID{Kind: "Pod", Namespace: namespace, Name: p.pod}]; ok {
			p.Message += ": " + failure.Join(e.Reason, e.Message)
		}
	}
}

// log returns the most informative lines at the end of the log of the container that has a problem.
func log(ctx context.Context, c *observe.Cluster, namespace string, p Problem) []string {
	lines, _ := c.Log(ctx, observe.Container{Namespace: namespace, Pod: p.pod, Name: p.container}) // the problem is valid without them
	return notable(lines)
}

// notable returns the most informative lines of a log: the lines from the last Go panic on, or else the last lines.
func notable(lines []string) []string {
	from := max(0, len(lines)-shownLines)
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			from = i
		}
	}
	return lines[from:min(from+shownLines, len(lines))]
}

// Deleted returns the problems of deleted pods of workloads shortly before a failure, according to their events.
func Deleted(ctx context.Context, c *observe.Cluster, namespace string, objects []controllers.ID, failed time.Time) []Problem {
	messages, err := c.DeletedPods(ctx, namespace, objects, failed.Add(-deletedBefore), failed.Add(time.Minute))
	if err != nil {
		return nil
	}
	var problems []Problem
	for _, t := range objects {
		if message, ok := messages[t]; ok {
			problems = append(problems, Problem{Name: t.String(), Object: t, Message: message})
		}
	}
	return problems
}
