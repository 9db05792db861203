package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// query is which objects a listing is about and how it shows them.
type query struct {
	client    *kube.Client
	now       func() time.Time
	options   *getOptions
	kinds     []controllers.Kind
	several   bool   // the command lists several kinds, even if one is left
	namespace string // "" for all
	names     []string
	status    statusSelector
	sorter    sorter
}

// query turns the options into what is asked for. What is wrong with them is
// said here, before a request is sent.
func (a *app) query(cmd *cobra.Command, o *getOptions, kinds []controllers.Kind, names []string) (*query, error) {
	status, err := parseStatusSelector(o.status)
	if err != nil {
		return nil, err
	}
	q := &query{now: a.now, options: o, kinds: kinds, names: unique(names), status: status}
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

func unique(names []string) []string {
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

// printsObjects tells whether whole objects are printed, and not a table.
func (q *query) printsObjects() bool { return q.options.format != "" && !q.wide() }

func (q *query) wide() bool { return q.options.format == "wide" }

// flat tells whether several kinds share one table.
func (q *query) flat() bool { return q.several && (q.wide() || q.options.watch) }

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

// named tells whether an object has one of the names that were asked for.
func (q *query) named(o controllers.Object) bool {
	return len(q.names) == 0 || slices.Contains(q.names, controllers.Name(o))
}

// listing is one kind's part of an answer.
type listing struct {
	kind    controllers.Kind
	found   int // before the filters
	names   map[string]bool
	entries []entry
	err     error
}

// entry is an object as far as the answer needs it: a row for a table, all of
// it for a printer. A long list costs the memory of its rows.
type entry struct {
	object  controllers.Object
	row     []string
	urgency int
	key     sortKey
}

func (q *query) list(ctx context.Context, k controllers.Kind) listing {
	l := listing{kind: k, names: map[string]bool{}}
	columns := q.columns(k)
	l.err = q.client.With(ctx, k, func(r kube.Resource) error {
		s := q.selection()
		s.Without = q.unshown(k)
		_, err := q.client.List(ctx, r, s, func(o controllers.Object) error {
			q.take(&l, columns, o)
			return nil
		})
		return err
	})
	q.sort(l.entries)
	return l
}

// unshown are the large fields that no table shows and no filter reads; a list
// steps over them, which halves its cost. Only --sort-by can name any field.
func (q *query) unshown(k controllers.Kind) []string {
	if q.printsObjects() || q.sorter != nil {
		return nil
	}
	fields := []string{"metadata.managedFields", "spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild"}
	if k.Inventory != nil && k.Family == "" {
		fields = append(fields, "status.inventory")
	}
	return fields
}

// take adds an object to a listing if it is asked for.
func (q *query) take(l *listing, columns []column, o controllers.Object) {
	if !q.named(o) {
		return
	}
	l.found++
	if len(q.names) > 0 {
		l.names[controllers.Name(o)] = true
	}
	if q.keeps(l.kind, o) {
		l.entries = append(l.entries, q.entry(l.kind, columns, o))
	}
}

func (q *query) entry(k controllers.Kind, columns []column, o controllers.Object) entry {
	e := entry{urgency: urgency(k, o)}
	if q.sorter != nil {
		e.key = q.sorter(k, o)
	}
	if q.printsObjects() {
		e.object = o
	} else {
		e.row = cells(columns, k, o)
	}
	return e
}

// listAll lists the kinds at once, in their order.
func (q *query) listAll(ctx context.Context) []listing {
	listings := make([]listing, len(q.kinds))
	var wg sync.WaitGroup
	for i, k := range q.kinds {
		wg.Go(func() { listings[i] = q.list(ctx, k) })
	}
	wg.Wait()
	return listings
}

// missing are the names that were asked for and not found.
func (q *query) missing(l listing) []string {
	return slices.DeleteFunc(slices.Clone(q.names), func(name string) bool { return l.names[name] })
}

// merge makes one list of those of several kinds.
func (q *query) merge(listings []listing) []entry {
	var all []entry
	for _, l := range listings {
		all = append(all, l.entries...)
	}
	q.sort(all)
	return all
}

func tableOf(columns []column, entries []entry) output.Table {
	return output.Table{Headers: headers(columns), Rows: rowsOf(entries)}
}

func rowsOf(entries []entry) [][]string {
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, e.row)
	}
	return rows
}

func objectsOf(entries []entry) []unstructured.Unstructured {
	var objects []controllers.Object
	for _, e := range entries {
		objects = append(objects, e.object)
	}
	return unstructuredOf(objects)
}

func unstructuredOf(objects []controllers.Object) []unstructured.Unstructured {
	items := make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		items[i] = unstructured.Unstructured{Object: o}
	}
	return items
}
