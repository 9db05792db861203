// Package event reads the events of Kubernetes.
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
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Resource is the resource of events.
func Resource() kube.Resource {
	r := kube.Resource{Kind: "Event"}
	r.Version, r.Resource = "v1", "events"
	return r
}

// Event is an event as far as a line of it goes.
type Event struct {
	Object controllers.Object
	// Group, kind, namespace and name are those of the object that it is about.
	Group, Kind, Namespace, Name string
	Typ, Reason, Message, From   string
	// First and at are when it happened first and last, count how often.
	First, At time.Time
	Count     int
	version   uint64
}

// Of reads an event. Recorders of the older API repeat one by its count
// and lastTimestamp, those of the newer one by its series.
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
	h := Event{
		Object: o, Kind: field("involvedObject.kind"), Namespace: field("involvedObject.namespace"), Name: field("involvedObject.name"),
		Typ: field("type"), Reason: field("reason"), Message: redact.Text(strings.TrimSpace(field("message"))),
		From:  cmp.Or(field("reportingComponent"), field("source.component")),
		First: at("firstTimestamp", "eventTime", "metadata.creationTimestamp"),
		At:    at("series.lastObservedTime", "lastTimestamp", "eventTime", "metadata.creationTimestamp"),
	}
	if gv, err := schema.ParseGroupVersion(field("involvedObject.apiVersion")); err == nil {
		h.Group = gv.Group
	}
	h.Count, _ = strconv.Atoi(field("series.count", "count"))
	h.version, _ = strconv.ParseUint(field("metadata.resourceVersion"), 10, 64)
	return h
}

// Sort puts the oldest first. The times of events are whole seconds:
// within one, the order in which the server took them in tells.
func Sort(list []Event) {
	slices.SortStableFunc(list, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.version, b.version))
	})
}

// ID is the same for a repetition of the event, and said differs then.
func (h Event) ID() string { return controllers.Path{"metadata.uid"}.String(h.Object) }

// State differs between repetitions of an event.
func (h Event) State() string {
	return fmt.Sprintf("%d %d %s", h.At.UnixNano(), h.Count, h.Message)
}
