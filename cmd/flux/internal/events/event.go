package events

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/internal/kube/event"
)

func (q *query) headers() []string {
	headers := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if q.options.format == "wide" {
		headers = slices.Insert(headers, 4, "FROM")
	}
	if q.namespace == "" {
		headers = slices.Insert(headers, 0, "NAMESPACE")
	}
	return headers
}

func (q *query) row(h event.Event) []string {
	row := []string{q.lastSeen(h), h.Type, h.Reason, h.About.Kind + "/" + h.About.Name, strings.Join(strings.Fields(h.Message), " ")}
	if q.options.format == "wide" {
		row = slices.Insert(row, 4, h.From)
	}
	if q.namespace == "" {
		row = slices.Insert(row, 0, h.About.Namespace)
	}
	return row
}

// lastSeen returns the age of the event and, for a repeated event, the number
// of occurrences.
func (q *query) lastSeen(h event.Event) string {
	ago := func(t time.Time) string {
		if t.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(q.app.Now().Sub(t))
	}
	if h.Count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", ago(h.At), h.Count, ago(h.First))
	}
	return ago(h.At)
}
