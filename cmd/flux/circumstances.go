package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/internal/diagnose"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// explainedObjects bounds for how many objects it is looked up why they
	// are not ready: where more fail at once, the cause is a common one.
	explainedObjects = 10
	// explainTime bounds the look at one of them.
	explainTime = 5 * time.Second
	// lastEvents is how many events of an object are shown.
	lastEvents = 3
)

// unreadyError says that an object is not as it should be, and what else is
// known about it.
type unreadyError struct {
	message string
	details []string
}

func (e *unreadyError) Error() string {
	return strings.Join(append([]string{e.message}, e.details...), "\n  ")
}

// circumstances are lines about an object that is not ready: its last events,
// and the pods of what it has applied that are not ready and why. What cannot
// be had is left out: the outcome stands without it.
func (a *app) circumstances(ctx context.Context, client *kube.Client, t target, o controllers.Object) []string {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	var lines []string
	events, err := diagnose.Events(ctx, client, t.kind.Kind, t.namespace, t.name, lastEvents)
	if err == nil {
		for _, e := range events {
			lines = append(lines, fmt.Sprintf("event %s ago: %s %s", a.since(e.At), e.Type, e.Text))
		}
	}
	for _, trouble := range diagnose.Workloads(ctx, client, t.kind.Managed(o)) {
		lines = append(lines, trouble.Name+": "+trouble.Message)
		lines = append(lines, trouble.Details()...)
	}
	return lines
}

func (a *app) since(at time.Time) string { return duration.HumanDuration(a.now().Sub(at)) }

// condition is what an object says of itself. While its controller is at work,
// what it is doing tells more than that it is.
func condition(k controllers.Kind, o controllers.Object) string {
	ready := k.Ready(o)
	if doing, ok := controllers.FindCondition(o, "Reconciling"); ok && ready.Status == "Unknown" && doing.Status == "True" {
		ready.Message = doing.Message
	}
	if ready.Reason == "" {
		return ready.Message
	}
	return ready.Reason + ": " + ready.Message
}

// remedy is where to look or what to do next.
func remedy(t target, o controllers.Object) string {
	if t.kind.Kind == "HelmRelease" && o != nil && controllers.RetriesExhausted(o) {
		return fmt.Sprintf("its retries are exhausted; mend the cause and try again: flux reconcile hr %s -n %s --reset", t.name, t.namespace)
	}
	return logsOf(t)
}

// logsOf is how to see what the controllers have to say about an object.
func logsOf(t target) string {
	return fmt.Sprintf("flux logs --for %s/%s -n %s", t.kind.Kind, t.name, t.namespace)
}
