package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
)

// history reads Kubernetes events. It lists the events of an object once: the
// root cause of a failed object is often the object itself.
type history struct {
	client *kube.Client
	events cache[controllers.ID, []event.Event]
}

// of returns the events of an object, newest last.
func (h *history) of(ctx context.Context, t controllers.ID) ([]event.Event, error) {
	return h.events.get(t, func() ([]event.Event, error) {
		var events []event.Event
		fields := fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", t.Kind, t.Name)
		err := h.list(ctx, t.Namespace, fields, func(e event.Event) { events = append(events, e) })
		event.Sort(events)
		return events, err
	})
}

// list lists the events in a namespace, or in all for "", that match a field
// selector.
func (h *history) list(ctx context.Context, namespace, fields string, each func(event.Event)) error {
	selection := kube.Selection{Namespace: namespace, Fields: fields, Without: []string{"metadata.managedFields"}}
	_, err := h.client.List(ctx, event.Resource(), selection, func(o controllers.Object) error {
		each(event.Of(o))
		return nil
	})
	return err
}

// latest returns the last events with different texts, newest last.
func latest(events []event.Event, last int) []event.Event {
	var found []event.Event
	told := map[string]bool{}
	for _, e := range slices.Backward(events) {
		if text := textOf(e); !told[text] && len(found) < last {
			told[text] = true
			found = append(found, e)
		}
	}
	slices.Reverse(found)
	return found
}

// textOf returns the reason and the message of an event in one line.
func textOf(e event.Event) string { return join(e.Reason, WithoutFolders(e.Message)) }

// dispatchFailures returns the newest failure and the number of failures for
// each object that sends notifications.
func (h *history) dispatchFailures(ctx context.Context, namespace string) (map[controllers.ID]dispatchFailure, error) {
	failures := map[controllers.ID]dispatchFailure{}
	err := h.list(ctx, namespace, "reason="+dispatchFailed, func(e event.Event) {
		t := e.About
		failure := failures[t]
		failure.count++
		if e.At.After(failure.at) {
			failure.at, failure.message = e.At, e.Message
		}
		failures[t] = failure
	})
	return failures, err
}

type dispatchFailure struct {
	at      time.Time
	message string
	count   int
}

// refusedPods returns, for each workload, the message of the last rejected pod.
func (h *history) refusedPods(ctx context.Context, namespace string) (map[controllers.ID]string, error) {
	texts, at := map[controllers.ID]string{}, map[controllers.ID]time.Time{}
	err := h.list(ctx, namespace, "reason=FailedCreate,type=Warning", func(e event.Event) {
		if t := e.About; e.At.After(at[t]) {
			texts[t], at[t] = e.Message, e.At
		}
	})
	return texts, err
}

// releaseEvidence is the maximum time between an event of a pod and the failure
// of the release that it explains.
const releaseEvidence = 10 * time.Minute

// deletedPods returns, for each workload, the most detailed warning about its
// deleted pods shortly before a failure.
func (h *history) deletedPods(ctx context.Context, namespace string, workloads []controllers.ID, failed time.Time) (map[controllers.ID]string, error) {
	found := map[controllers.ID]string{}
	err := h.list(ctx, namespace, "involvedObject.kind=Pod,type=Warning", func(e event.Event) {
		if failed.Sub(e.At) > releaseEvidence || e.At.After(failed.Add(time.Minute)) {
			return
		}
		for _, t := range workloads {
			message := fmt.Sprintf("pod %s, since deleted: %s", e.About.Name, textOf(e))
			if (e.About.Name == t.Name || strings.HasPrefix(e.About.Name, t.Name+"-")) && len(message) > len(found[t]) {
				found[t] = message
			}
		}
	})
	return found, err
}

// warnings returns the newest warning about each object in a namespace, by
// name.
func (h *history) warnings(ctx context.Context, namespace string) (map[string]string, error) {
	newest, at := map[string]string{}, map[string]time.Time{}
	err := h.list(ctx, namespace, "type=Warning", func(e event.Event) {
		if !e.At.Before(at[e.About.Name]) {
			newest[e.About.Name], at[e.About.Name] = join(e.Reason, e.Message), e.At
		}
	})
	return newest, err
}

// pruning is the last event with which a Flux object reports that it has pruned
// another object.
type pruning struct {
	at time.Time
	by controllers.ID
}

// pruning returns the last event that reports the pruning of an object, in a
// namespace or in all for "". It is zero if there is none.
func (h *history) pruning(ctx context.Context, namespace string, t controllers.ID) (last pruning, err error) {
	err = h.list(ctx, namespace, "type=Normal", func(e event.Event) {
		reported := slices.ContainsFunc(strings.Split(e.Message, "\n"), func(line string) bool { return strings.TrimSpace(line) == t.String()+" deleted" })
		if reported && !e.At.Before(last.at) {
			last = pruning{e.At, e.About}
		}
	})
	return last, err
}
