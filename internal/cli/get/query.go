package get

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// query is which objects a listing is about and how it shows them.
type query struct {
	client    *kube.Client
	now       func() time.Time
	options   *options
	kinds     []controllers.Kind
	several   bool   // the command lists several kinds, even if one is left
	every     bool   // kinds that the cluster does not serve are left out
	namespace string // "" for all
	// objects are the named ones, none where all are listed. One without a
	// namespace is looked for in all of them.
	objects []objref.Target
	status  kinds.ConditionSelector
	sorter  sorter
	// stream prints objects while they are read, nil where all are needed first.
	stream *objectStream
}

// newQuery turns the options into what is asked for. What is wrong with them is
// said here, before a request is sent.
func newQuery(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) (*query, error) {
	status, err := kinds.ParseConditionSelector(o.status)
	if err != nil {
		return nil, err
	}
	q := &query{now: a.Now, options: o, kinds: s.Kinds, several: s.Several(), every: s.Every, status: status}
	if q.printsObjects() {
		if _, err := output.ObjectPrinter(o.format); err != nil {
			return nil, err
		}
	}
	if !o.allNamespaces {
		if q.namespace, err = a.Namespace(cmd); err != nil {
			return nil, err
		}
	}
	q.name(s.In(q.namespace))
	if q.sorter, err = newSorter(q, o.sortBy); err != nil {
		return nil, err
	}
	q.client, err = a.Client()
	return q, err
}

// name makes the query one of named objects. Its namespace is theirs where all
// of them have the same.
func (q *query) name(objects []objref.Target) {
	q.objects = objects
	for i, t := range objects {
		if i == 0 || t.Namespace == q.namespace {
			q.namespace = t.Namespace
		} else {
			q.namespace = ""
		}
	}
}

// printsObjects reports whether whole objects are printed, and not a table.
func (q *query) printsObjects() bool { return q.options.format != "" && !q.wide() }

func (q *query) wide() bool { return q.options.format == "wide" }

// flat reports whether several kinds share one table.
func (q *query) flat() bool { return q.several && (q.wide() || q.options.watch) }

func (q *query) where() string { return objref.InNamespace(q.namespace) }

// selections are the lists that have the objects of a kind which are asked for:
// one, or one for each namespace of named objects.
func (q *query) selections(k controllers.Kind) []kube.Selection {
	if len(q.objects) == 0 {
		return []kube.Selection{{Namespace: q.namespace, Labels: q.options.labels}}
	}
	var all []kube.Selection
	for _, t := range q.named(k) {
		i := slices.IndexFunc(all, func(s kube.Selection) bool { return s.Namespace == t.Namespace })
		if i < 0 {
			all = append(all, kube.Selection{Namespace: t.Namespace, Labels: q.options.labels, Name: t.Name})
		} else {
			all[i].Name = "" // several names are picked from the list of the namespace
		}
	}
	return all
}

// watched is the one list that has all the objects of a kind which are asked for.
func (q *query) watched(k controllers.Kind) kube.Selection {
	all := q.selections(k)
	if len(all) == 1 {
		return all[0]
	}
	return kube.Selection{Labels: q.options.labels}
}

// named are the objects of a kind that are named.
func (q *query) named(k controllers.Kind) []objref.Target {
	return slices.DeleteFunc(slices.Clone(q.objects), func(t objref.Target) bool { return t.Kind.Kind != k.Kind })
}

// wants reports whether an object is asked for.
func (q *query) wants(k controllers.Kind, o controllers.Object) bool {
	return len(q.objects) == 0 || slices.ContainsFunc(q.objects, func(t objref.Target) bool { return is(t, k, o) })
}

// is reports whether the target is an object; one without a namespace is in any.
func is(t objref.Target, k controllers.Kind, o controllers.Object) bool {
	return t.Kind.Kind == k.Kind && t.Name == controllers.Name(o) && (t.Namespace == "" || t.Namespace == controllers.Namespace(o))
}

// listing is one kind's part of an answer.
type listing struct {
	kind    controllers.Kind
	found   int             // before the filters
	named   []objref.Target // the named objects that were found
	entries []entry
	// write prints an object instead of keeping it; nil for entries.
	write func(controllers.Object) error
	err   error
}

// entry is an object as far as the answer needs it: a row for a table, all of
// it for a printer. A long list costs the memory of its rows.
type entry struct {
	object  controllers.Object
	row     []string
	urgency int
	key     sortKey
}

// list reads the objects of a kind; with a stream they are printed meanwhile.
func (q *query) list(ctx context.Context, k controllers.Kind) listing {
	if q.stream == nil {
		return q.read(ctx, k, nil)
	}
	var l listing
	place := slices.IndexFunc(q.kinds, func(row controllers.Kind) bool { return row.Kind == k.Kind })
	err := q.stream.Read(place, func(each func(controllers.Object) error) error {
		l = q.read(ctx, k, each)
		return l.err
	})
	l.err = err
	return l
}

// read reads the objects of a kind. With write they are printed and not kept.
func (q *query) read(ctx context.Context, k controllers.Kind, write func(controllers.Object) error) listing {
	l := listing{kind: k, write: write}
	columns := columnsOf(q, k)
	for _, s := range q.selections(k) {
		s.Without = q.unshown(k)
		l.err = errors.Join(l.err, q.client.WithServedVersion(ctx, k, func(r kube.Resource) error {
			_, err := q.client.List(ctx, r, s, func(o controllers.Object) error { return q.take(&l, columns, o) })
			return err
		}))
	}
	q.sort(l.entries)
	return l
}

// unshown are the large fields that no table shows and no filter reads; a list
// steps over them, which halves its cost. Only templates and --sort-by can name
// any field.
func (q *query) unshown(k controllers.Kind) []string {
	if q.writesList() && !strings.Contains(q.options.sortBy, "managedFields") {
		return []string{"metadata.managedFields"}
	}
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
func (q *query) take(l *listing, columns []column, o controllers.Object) error {
	if !q.wants(l.kind, o) {
		return nil
	}
	l.found++
	for _, t := range q.objects {
		if is(t, l.kind, o) {
			l.named = append(l.named, t)
		}
	}
	switch {
	case !q.keeps(l.kind, o):
		return nil
	case l.write != nil:
		return l.write(o)
	}
	l.entries = append(l.entries, q.entry(l.kind, columns, o))
	return nil
}

func (q *query) entry(k controllers.Kind, columns []column, o controllers.Object) entry {
	e := entry{urgency: urgency(k, o)}
	if q.sorter != nil {
		e.key = q.sorter(k, o)
	}
	if q.options.format == "name" {
		e.object = identity(o)
	} else if q.printsObjects() {
		e.object = o
	} else {
		e.row = cells(columns, k, o)
	}
	return e
}

// writesList reports whether the format is one that prints no managedFields.
func (q *query) writesList() bool { return q.options.format == "json" || q.options.format == "yaml" }

// identity is the part of an object that -o name prints.
func identity(o controllers.Object) controllers.Object {
	return controllers.Object{
		"apiVersion": o["apiVersion"], "kind": o["kind"],
		"metadata": map[string]any{"namespace": controllers.Namespace(o), "name": controllers.Name(o)},
	}
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

// missing are the objects that were named and not found.
func (q *query) missing(l listing) []objref.Target {
	return slices.DeleteFunc(q.named(l.kind), func(t objref.Target) bool {
		return slices.ContainsFunc(l.named, func(found objref.Target) bool { return found.Key() == t.Key() })
	})
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
	return output.Unstructured(objects)
}
