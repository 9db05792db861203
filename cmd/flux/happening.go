package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// happening is an event as far as a line of it goes.
type happening struct {
	object controllers.Object
	// group, kind, namespace and name are those of the object that it is about.
	group, kind, namespace, name string
	typ, reason, message, from   string
	// first and at are when it happened first and last, count how often.
	first, at time.Time
	count     int
	version   uint64
}

// happened reads an event. Recorders of the older API repeat one by its count
// and lastTimestamp, those of the newer one by its series.
func happened(o controllers.Object) happening {
	field := func(paths ...string) string { return controllers.Path(paths).String(o) }
	at := func(fields ...string) time.Time {
		for _, f := range fields {
			if t, err := time.Parse(time.RFC3339, field(f)); err == nil {
				return t
			}
		}
		return time.Time{}
	}
	h := happening{
		object: o, kind: field("involvedObject.kind"), namespace: field("involvedObject.namespace"), name: field("involvedObject.name"),
		typ: field("type"), reason: field("reason"), message: redact.Text(strings.TrimSpace(field("message"))),
		from:  cmp.Or(field("reportingComponent"), field("source.component")),
		first: at("firstTimestamp", "eventTime", "metadata.creationTimestamp"),
		at:    at("series.lastObservedTime", "lastTimestamp", "eventTime", "metadata.creationTimestamp"),
	}
	if gv, err := schema.ParseGroupVersion(field("involvedObject.apiVersion")); err == nil {
		h.group = gv.Group
	}
	h.count, _ = strconv.Atoi(field("series.count", "count"))
	h.version, _ = strconv.ParseUint(field("metadata.resourceVersion"), 10, 64)
	return h
}

// sortHappenings puts the oldest first. The times of events are whole seconds:
// within one, the order in which the server took them in tells.
func sortHappenings(list []happening) {
	slices.SortStableFunc(list, func(a, b happening) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.version, b.version))
	})
}

// id is the same for a repetition of the event, and said differs then.
func (h happening) id() string { return controllers.Path{"metadata.uid"}.String(h.object) }

func (h happening) said() string {
	return fmt.Sprintf("%d %d %s", h.at.UnixNano(), h.count, h.message)
}

func (q *eventQuery) headers() []string {
	headers := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if q.options.format == "wide" {
		headers = slices.Insert(headers, 4, "FROM")
	}
	if q.namespace == "" {
		headers = slices.Insert(headers, 0, "NAMESPACE")
	}
	return headers
}

func (q *eventQuery) row(h happening) []string {
	row := []string{q.lastSeen(h), h.typ, h.reason, h.kind + "/" + h.name, strings.Join(strings.Fields(h.message), " ")}
	if q.options.format == "wide" {
		row = slices.Insert(row, 4, h.from)
	}
	if q.namespace == "" {
		row = slices.Insert(row, 0, h.namespace)
	}
	return row
}

// lastSeen is how long ago it was and, of what has been repeated, how often.
func (q *eventQuery) lastSeen(h happening) string {
	ago := func(t time.Time) string {
		if t.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(q.app.now().Sub(t))
	}
	if h.count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", ago(h.at), h.count, ago(h.first))
	}
	return ago(h.at)
}
