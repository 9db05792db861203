package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// query is which objects a listing is about and how it shows them.
type query struct {
	client    *kube.Client
	now       func() time.Time
	options   *getOptions
	namespace string // "" for all
	names     []string
	status    statusSelector
}

func (a *app) query(cmd *cobra.Command, o *getOptions, names []string) (*query, error) {
	status, err := parseStatusSelector(o.status)
	if err != nil {
		return nil, err
	}
	q := &query{now: a.now, options: o, names: names, status: status}
	if q.printsObjects() {
		if _, err := output.ObjectPrinter(o.format); err != nil {
			return nil, err
		}
	}
	if !o.allNamespaces {
		if q.namespace, err = a.namespace(cmd); err != nil {
			return nil, err
		}
	}
	q.client, err = a.cluster()
	return q, err
}

// printsObjects tells whether whole objects are printed, and not a table.
func (q *query) printsObjects() bool { return q.options.format != "" && !q.wide() }

func (q *query) where() string {
	if q.namespace == "" {
		return "any namespace"
	}
	return fmt.Sprintf("%q namespace", q.namespace)
}

func (q *query) selection() kube.Selection {
	s := kube.Selection{Namespace: q.namespace, Labels: q.options.labels}
	if len(q.names) == 1 {
		s.Name = q.names[0]
	}
	return s
}

func (q *query) list(ctx context.Context, k controllers.Kind) listing {
	l := listing{kind: k}
	l.err = q.client.With(ctx, k, func(r kube.Resource) error {
		_, err := q.client.List(ctx, r, q.selection(), func(o controllers.Object) error {
			if len(q.names) > 1 && !slices.Contains(q.names, controllers.Name(o)) {
				return nil
			}
			l.found++
			if q.keeps(k, o) {
				l.objects = append(l.objects, q.slim(k, o))
			}
			return nil
		})
		return err
	})
	return l
}

// slim drops what a table does not show, so that a long list stays small.
func (q *query) slim(k controllers.Kind, o controllers.Object) controllers.Object {
	if q.printsObjects() {
		return o
	}
	if status, ok := o["status"].(map[string]any); ok && k.Inventory != nil && k.Family == "" {
		delete(status, "inventory")
	}
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	return o
}

// listAll lists several kinds at once, in their order.
func (q *query) listAll(ctx context.Context, rows []controllers.Kind) []listing {
	listings := make([]listing, len(rows))
	var wg sync.WaitGroup
	for i, k := range rows {
		wg.Go(func() { listings[i] = q.list(ctx, k) })
	}
	wg.Wait()
	return listings
}

func (q *query) keeps(k controllers.Kind, o controllers.Object) bool { return q.status.matches(k, o) }

// missing are the names that were asked for and not found.
func (q *query) missing(l listing) []string {
	if l.found >= len(q.names) && len(q.names) <= 1 {
		return nil
	}
	found := map[string]bool{}
	for _, o := range l.objects {
		found[controllers.Name(o)] = true
	}
	return slices.DeleteFunc(slices.Clone(q.names), func(name string) bool { return found[name] })
}

// table has the kind's own columns between NAME and READY.
func (q *query) table(k controllers.Kind, objects []controllers.Object, prefix string) output.Table {
	var t output.Table
	if q.namespace == "" {
		t.Headers = append(t.Headers, "NAMESPACE")
	}
	t.Headers = append(t.Headers, "NAME")
	if q.options.showSource {
		t.Headers = append(t.Headers, "SOURCE")
	}
	for _, c := range k.Columns {
		t.Headers = append(t.Headers, c.Header)
	}
	t.Headers = append(t.Headers, "READY")
	if q.wide() {
		t.Headers = append(t.Headers, wideHeaders...)
	}
	t.Headers = append(t.Headers, "MESSAGE")
	for _, o := range objects {
		t.Rows = append(t.Rows, q.row(k, o, prefix))
	}
	return t
}

func (q *query) row(k controllers.Kind, o controllers.Object, prefix string) []string {
	var row []string
	if q.namespace == "" {
		row = append(row, controllers.Namespace(o))
	}
	row = append(row, prefix+controllers.Name(o))
	if q.options.showSource {
		source := ""
		for _, t := range k.SourceOf(o) {
			source = t.String()
		}
		row = append(row, source)
	}
	for _, c := range k.Columns {
		row = append(row, c.Cell(k, o))
	}
	ready := k.Ready(o)
	row = append(row, ready.Status)
	if q.wide() {
		row = append(row, q.wideCells(k, o)...)
	}
	return append(row, oneLine(ready.Message))
}

// statusSelector selects objects by a condition: type=status or type!=status.
type statusSelector struct {
	typ, status string
	negated     bool
}

func parseStatusSelector(s string) (statusSelector, error) {
	if s == "" {
		return statusSelector{}, nil
	}
	for _, operator := range []string{"!=", "="} {
		if typ, status, ok := strings.Cut(s, operator); ok && typ != "" && status != "" && !strings.Contains(status, "=") {
			return statusSelector{typ, status, operator == "!="}, nil
		}
	}
	return statusSelector{}, fmt.Errorf("expected status selector in type=status or type!=status format, but found: %s", s)
}

// matches compares as the READY column shows it. An object without the
// condition has no status, which is different from any.
func (s statusSelector) matches(k controllers.Kind, o controllers.Object) bool {
	if s.typ == "" {
		return true
	}
	status := ""
	if c, ok := controllers.FindCondition(o, s.typ); ok {
		status = c.Status
	} else if strings.EqualFold(s.typ, "ready") && k.Static != nil && k.Static(o) {
		status = k.Ready(o).Status
	}
	return strings.EqualFold(status, s.status) != s.negated
}
