package diagnose

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Event is something that was reported about an object.
type Event struct {
	// At is when it last happened.
	At time.Time
	// Type is Normal or Warning, and Text its reason and message in a line.
	Type, Text string
}

// keptEvents bounds how many events of an object are read to find the last.
const keptEvents = 500

// Events returns the last events about an object, the newest at the end. What
// was said several times is there once, as it was said last.
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
