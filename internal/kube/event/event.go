// Package event parses and sorts Kubernetes events.
package event

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Resource returns the API resource of events.
func Resource() kube.Resource {
	r := kube.Resource{Kind: "Event"}
	r.Version, r.Resource = "v1", "events"
	return r
}

// Event contains the fields of a Kubernetes event that flux prints.
type Event struct {
	Object controllers.Object
	// About is the involved object.
	About                       controllers.ID
	Type, Reason, Message, From string
	// First and At are the times of the first and the last occurrence, and Count is the number of occurrences.
	First, At time.Time
	Count     int
	version   uint64
}

// Of parses an event. The core API counts repetitions in count and
// lastTimestamp, the events.k8s.io API in series.
func Of(o controllers.Object) Event {
	field := func(paths ...string) string { return controllers.Path(paths).String(o) }
	at := func(fields ...string) time.Time {
		for _, f := range fields {
			if t, err := time.Parse(time.RFC3339, field(f)); err == nil {
				return t
			}
		}
		return time.Time{}
	}
	e := Event{
		Object: o, About: controllers.ID{Kind: field("involvedObject.kind"), Namespace: field("involvedObject.namespace"), Name: field("involvedObject.name")},
		Type: field("type"), Reason: field("reason"), Message: redact.Text(strings.TrimSpace(field("message"))),
		From:  cmp.Or(field("reportingComponent"), field("source.component")),
		First: at("firstTimestamp", "eventTime", "metadata.creationTimestamp"),
		At:    at("series.lastObservedTime", "lastTimestamp", "eventTime", "metadata.creationTimestamp"),
	}
	if gv, err := schema.ParseGroupVersion(field("involvedObject.apiVersion")); err == nil {
		e.About.Group = gv.Group
	}
	e.Count, _ = strconv.Atoi(field("series.count", "count"))
	e.version, _ = strconv.ParseUint(field("metadata.resourceVersion"), 10, 64)
	return e
}

// Sort sorts events by time, and events of the same second by resource version,
// because timestamps have a precision of one second.
func Sort(list []Event) {
	slices.SortStableFunc(list, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.version, b.version))
	})
}

// ID returns the UID of the event, which all repetitions share.
func (e Event) ID() string { return controllers.Path{"metadata.uid"}.String(e.Object) }

// State returns a string that differs between repetitions of an event.
func (e Event) State() string {
	return fmt.Sprintf("%d %d %s", e.At.UnixNano(), e.Count, e.Message)
}
