package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Events returns the events of an object, newest last. The root cause of a failed object is often the object itself, so they
// are read once.
func (c *Cluster) Events(ctx context.Context, t controllers.ID) ([]event.Event, error) {
	return c.events.get(t, func() ([]event.Event, error) {
		var events []event.Event
		fields := fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", t.Kind, t.Name)
		err := c.eachEvent(ctx, t.Namespace, fields, func(e event.Event) { events = append(events, e) })
		event.Sort(events)
		return events, err
	})
}

// eachEvent calls each with the events that match a field selector in a namespace, or in all namespaces if it is "".
func (c *Cluster) eachEvent(ctx context.Context, namespace, fields string, each func(event.Event)) error {
	selection := kube.Selection{Namespace: namespace, Fields: fields, Without: []string{"metadata.managedFields"}}
	_, err := c.Client.List(ctx, event.Resource(), selection, func(o controllers.Object) error {
		each(event.Of(o))
		return nil
	})
	return err
}

// NewestEvents returns the newest event about each object that matches a field selector in a namespace, or in all namespaces
// if it is "".
func (c *Cluster) NewestEvents(ctx context.Context, namespace, fields string) (map[controllers.ID]event.Event, error) {
	newest := map[controllers.ID]event.Event{}
	err := c.eachEvent(ctx, namespace, fields, func(e event.Event) {
		if !e.At.Before(newest[e.About].At) {
			newest[e.About] = e
		}
	})
	return newest, err
}

// DeletedPods returns, for each workload, the most detailed warning about its deleted pods in a period.
func (c *Cluster) DeletedPods(ctx context.Context, namespace string, workloads []controllers.ID, from, to time.Time) (map[controllers.ID]string, error) {
	found := map[controllers.ID]string{}
	err := c.eachEvent(ctx, namespace, "involvedObject.kind=Pod,type=Warning", func(e event.Event) {
		if e.At.Before(from) || e.At.After(to) {
			return
		}
		for _, t := range workloads {
			message := fmt.Sprintf("pod %s, since deleted: %s", e.About.Name, EventText(e))
			if (e.About.Name == t.Name || strings.HasPrefix(e.About.Name, t.Name+"-")) && len(message) > len(found[t]) {
				found[t] = message
			}
		}
	})
	return found, err
}

// Pruning returns the last event in namespace, or in all namespaces if that is "", that reports the pruning of an object by
// a Flux object. It returns a zero event if there is none.
func (c *Cluster) Pruning(ctx context.Context, namespace string, t controllers.ID) (last event.Event, err error) {
	err = c.eachEvent(ctx, namespace, "type=Normal", func(e event.Event) {
		reported := slices.ContainsFunc(strings.Split(e.Message, "\n"), func(line string) bool { return strings.TrimSpace(line) == t.String()+" deleted" })
		if reported && !e.At.Before(last.At) {
			last = e
		}
	})
	return last, err
}

// Latest returns the last events with different texts, newest last.
func Latest(events []event.Event, most int) []event.Event {
	var found []event.Event
	seen := map[string]bool{}
	for _, e := range slices.Backward(events) {
		if text := EventText(e); !seen[text] && len(found) < most {
			seen[text] = true
			found = append(found, e)
		}
	}
	slices.Reverse(found)
	return found
}

// EventText returns the reason and the message of an event in one line.
func EventText(e event.Event) string {
	return failure.Join(e.Reason, failure.WithoutTempDirs(e.Message))
}
