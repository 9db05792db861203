package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// wideHeaders are the columns that -o wide puts between READY and MESSAGE.
var wideHeaders = []string{"AGE", "SOURCE", "LAST HANDLED"}

func (q *query) wide() bool { return q.options.format == "wide" }

func (q *query) wideCells(k controllers.Kind, o controllers.Object) []string {
	var sources []string
	for _, t := range k.SourceOf(o) {
		sources = append(sources, t.String())
	}
	return []string{
		q.age(controllers.Path{"metadata.creationTimestamp"}.String(o)),
		strings.Join(sources, ","),
		q.age(controllers.Path{"status.lastHandledReconcileAt"}.String(o)),
	}
}

// age is how long ago a time (RFC 3339) was, as kubectl shows ages; what is
// no time is shown as it is, since lastHandledReconcileAt may hold any token.
func (q *query) age(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return duration.HumanDuration(q.now().Sub(at))
}

// flatTable is one table of objects of several kinds, failures first, then
// what is unknown, each in the order of the catalogue.
func (q *query) flatTable(listings []listing) output.Table {
	t := output.Table{Headers: []string{"KIND", "NAME", "REVISION", "SUSPENDED", "READY"}}
	if q.namespace == "" {
		t.Headers = append([]string{"NAMESPACE"}, t.Headers...)
	}
	t.Headers = append(append(t.Headers, wideHeaders...), "MESSAGE")
	ready := slices.Index(t.Headers, "READY")
	for _, l := range listings {
		for _, o := range l.objects {
			t.Rows = append(t.Rows, q.flatRow(l.kind, o))
		}
	}
	rank := func(row []string) int { return strings.Index("False Unknown True", row[ready]) }
	slices.SortStableFunc(t.Rows, func(a, b []string) int { return cmp.Compare(rank(a), rank(b)) })
	return t
}

func (q *query) flatRow(k controllers.Kind, o controllers.Object) []string {
	cells := map[string]string{}
	for _, c := range k.Columns {
		cells[c.Header] = c.Cell(k, o)
	}
	var row []string
	if q.namespace == "" {
		row = append(row, controllers.Namespace(o))
	}
	ready := k.Ready(o)
	row = append(row, k.Kind, controllers.Name(o), cells["REVISION"], cells["SUSPENDED"], ready.Status)
	return append(append(row, q.wideCells(k, o)...), oneLine(ready.Message))
}

// oneLine is a message as tables show it.
func oneLine(message string) string {
	return strings.ReplaceAll(controllers.Shorten(message), "\n", " ")
}
