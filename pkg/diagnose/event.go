package diagnose

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Event is an event of an object.
type Event struct {
	// At is the time of the last occurrence.
	At time.Time
	// Type is Normal or Warning. Text is the reason and message in one line.
	Type, Text string
}

// keptEvents is the maximum number of events to read for an object.
const keptEvents = 500

// Events returns the last events of an object, newest last. Of events with
// equal text it returns the newest.
func Events(ctx context.Context, client *kube.Client, kind, namespace, name string, last int) ([]Event, error) {
	objects, err := client.EventsOf(ctx, kind, namespace, name, keptEvents)
	if err != nil {
		return nil, err
	}
	newest := map[string]Event{}
	for _, o := range objects {
		e := eventOf(o)
		if at, known := newest[e.Text]; !known || e.At.After(at.At) {
			newest[e.Text] = e
		}
	}
	var events []Event
	for _, e := range newest {
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Text, b.Text)) })
	return events[max(0, len(events)-last):], nil
}

func eventOf(o controllers.Object) Event {
	field := func(name string) string { return controllers.Path{name}.String(o) }
	e := Event{Type: field("type"), Text: join(field("reason"), WithoutFolders(field("message")))}
	when := cmp.Or(field("series.lastObservedTime"), field("lastTimestamp"), field("eventTime"), field("metadata.creationTimestamp"))
	if at, err := time.Parse(time.RFC3339, when); err == nil {
		e.At = at
	}
	return e
}
