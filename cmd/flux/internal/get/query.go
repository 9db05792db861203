package get

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/get/columns"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// query selects the objects to list and their format.
type query struct {
	client    *kube.Client
	now       func() time.Time
	options   *options
	kinds     []controllers.Kind
	several   bool   // the command lists several kinds, even if only one is served
	screen    bool   // a table is printed on a terminal
	every     bool   // kinds that the cluster does not serve are skipped
	namespace string // "" for all
	// objects are the named objects, empty for all. An object without a namespace
	// is searched in all namespaces.
	objects []objref.Target
	status  kinds.ConditionSelector
	sorter  columns.Sorter
	// custom prints the columns of -o custom-columns, or is nil.
	custom *output.CustomColumns
	// stream prints objects while they are read. It is nil if all objects are required first.
	stream *objectStream
}

// newQuery returns the query for the options. It validates them before a request
// is sent.
func newQuery(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) (*query, error) {
	status, err := kinds.ParseConditionSelector(o.status)
	if err != nil {
		return nil, err
	}
	q := &query{now: a.Now, options: o, kinds: s.Kinds, several: s.Several(), every: s.Every, status: status}
	if o.format == "" {
		_, q.screen = a.Screen(false)
		q.screen = q.screen || a.Context != "" // several clusters share one table, too
	}
	if q.printsObjects() {
		if _, err := output.ObjectPrinter(o.format); err != nil {
			return nil, err
		}
		if q.custom, err = output.NewCustomColumns(o.format, output.NoHeader(o.noHeader)); err != nil {
			return nil, err
		}
	}
	if !o.allNamespaces {
		if q.namespace, err = a.Namespace(cmd); err != nil {
			return nil, err
		}
	}
	q.name(s.In(q.namespace))
	if q.sorter, err = q.table().Sorter(o.sortBy); err != nil {
		return nil, err
	}
	q.client, err = a.Client()
	return q, err
}

// name restricts the query to named objects. If all have the same namespace, the query uses it.
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

// printsObjects reports whether the output format prints whole objects instead of a table.
func (q *query) printsObjects() bool { return q.options.format != "" && !q.wide() }

func (q *query) wide() bool { return q.options.format == "wide" }

// flat reports whether several kinds share one table. In a pipe, each kind has a separate table, as in Flux
// 2.9.
func (q *query) flat() bool { return q.several && (q.wide() || q.screen || q.options.watch) }

// table describes the tables of the query.
func (q *query) table() *columns.Table {
	return &columns.Table{
		Kinds: q.kinds, Several: q.several, Flat: q.flat(), Kind: q.flat() && (q.wide() || q.screen),
		Namespaces: q.namespace == "", Source: q.options.showSource, Wide: q.wide(), Now: q.now,
	}
}

// columnsOf returns the columns of the table with a kind.
func columnsOf(q *query, k controllers.Kind) []columns.Column { return q.table().Of(k) }

// selections returns the lists that contain the selected objects of a kind: one, or one per
// namespace of named objects.
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

// watched returns the one list with all selected objects of a kind.
func (q *query) watched(k controllers.Kind) kube.Selection {
	all := q.selections(k)
	if len(all) == 1 {
		return all[0]
	}
	return kube.Selection{Labels: q.options.labels}
}

// named returns the named objects of a kind.
func (q *query) named(k controllers.Kind) []objref.Target {
	return slices.DeleteFunc(slices.Clone(q.objects), func(t objref.Target) bool { return t.Kind.CRD() != k.CRD() })
}

// wants reports whether the query selects an object.
func (q *query) wants(k controllers.Kind, o controllers.Object) bool {
	return len(q.objects) == 0 || slices.ContainsFunc(q.objects, func(t objref.Target) bool { return refersTo(t, k, o) })
}

// refersTo reports whether the target refers to an object. A target without a namespace matches any namespace.
func refersTo(t objref.Target, k controllers.Kind, o controllers.Object) bool {
	return t.Kind.CRD() == k.CRD() && t.Name == controllers.Name(o) && (t.Namespace == "" || t.Namespace == controllers.Namespace(o))
}

// listing has the objects of one kind.
type listing struct {
	kind    controllers.Kind
	found   int             // before the filters
	named   []objref.Target // the named objects that were found
	entries []entry
	// write prints an object instead of storing an entry, or is nil.
	write func(controllers.Object) error
	err   error
}

// entry is the stored part of an object: a row for tables, else the whole object. A long table only
// uses the memory of its rows.
type entry struct {
	object  controllers.Object
	row     []string
	urgency int
	key     columns.Key
}

// list reads the objects of a kind. With a stream it prints them at the same time.
func (q *query) list(ctx context.Context, k controllers.Kind) listing {
	if q.stream == nil {
		return q.read(ctx, k, nil)
	}
	var l listing
	place := slices.IndexFunc(q.kinds, func(row controllers.Kind) bool { return row.CRD() == k.CRD() })
	err := q.stream.Read(place, func(each func(controllers.Object) error) error {
		l = q.read(ctx, k, each)
		return l.err
	})
	l.err = err
	return l
}

// read reads the objects of a kind. With write it prints them and does not store them.
func (q *query) read(ctx context.Context, k controllers.Kind, write func(controllers.Object) error) listing {
	l := listing{kind: k, write: write}
	shown := columnsOf(q, k)
	for _, s := range q.selections(k) {
		s.Without = q.unshown(k)
		l.err = errors.Join(l.err, q.client.WithServedVersion(ctx, k, func(r kube.Resource) error {
			_, err := q.client.List(ctx, r, s, func(o controllers.Object) error { return q.take(&l, shown, o) })
			return err
		}))
	}
	q.sort(l.entries)
	return l
}

// unshown returns the large fields that no table or filter uses. Lists skip them,
// which halves their cost. Templates and --sort-by may use any field.
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

// take adds a selected object to a listing.
func (q *query) take(l *listing, shown []columns.Column, o controllers.Object) error {
	if !q.wants(l.kind, o) {
		return nil
	}
	l.found++
	for _, t := range q.objects {
		if refersTo(t, l.kind, o) {
			l.named = append(l.named, t)
		}
	}
	switch {
	case !q.keeps(l.kind, o):
		return nil
	case l.write != nil:
		return l.write(o)
	}
	l.entries = append(l.entries, q.entry(l.kind, shown, o))
	return nil
}

func (q *query) entry(k controllers.Kind, shown []columns.Column, o controllers.Object) entry {
	e := entry{urgency: columns.Urgency(k, o)}
	if q.sorter != nil {
		e.key = q.sorter(k, o)
	}
	switch {
	case q.options.format == "name":
		e.object = identity(o)
	case q.custom != nil && !q.options.watch: // a watch keeps the previous rows itself
		e.row = q.custom.Row(o)
	case q.printsObjects():
		e.object = o
	default:
		e.row = columns.Cells(shown, k, o)
	}
	return e
}

// keeps reports whether an object matches all filters.
func (q *query) keeps(k controllers.Kind, o controllers.Object) bool {
	ready := k.Ready(o).Status
	if q.options.suspended && !k.Suspension.Is(o) || q.options.notReady && ready == "True" || q.options.failed && !kinds.Failed(k, o) {
		return false
	}
	if _, stalled := controllers.Stalled(o); q.options.stalled && !stalled {
		return false
	}
	return q.status.Matches(k, o)
}

// writesList reports whether the format prints no managedFields.
func (q *query) writesList() bool { return q.options.format == "json" || q.options.format == "yaml" }

// identity returns the part of an object that -o name prints.
func identity(o controllers.Object) controllers.Object {
	return controllers.Object{
		"apiVersion": o["apiVersion"], "kind": o["kind"],
		"metadata": map[string]any{"namespace": controllers.Namespace(o), "name": controllers.Name(o)},
	}
}

// listAll lists the kinds concurrently and returns the listings in their order.
func (q *query) listAll(ctx context.Context) []listing {
	listings := make([]listing, len(q.kinds))
	var wg sync.WaitGroup
	for i, k := range q.kinds {
		wg.Go(func() { listings[i] = q.list(ctx, k) })
	}
	wg.Wait()
	return listings
}

// missing returns the named objects that were not found.
func (q *query) missing(l listing) []objref.Target {
	return slices.DeleteFunc(q.named(l.kind), func(t objref.Target) bool {
		return slices.ContainsFunc(l.named, func(found objref.Target) bool { return found.Key() == t.Key() })
	})
}

// merge joins the listings of several kinds.
func (q *query) merge(listings []listing) []entry {
	var all []entry
	for _, l := range listings {
		all = append(all, l.entries...)
	}
	q.sort(all)
	return all
}

// sort sorts entries by the key. Without a key it sorts one table of several
// kinds by urgency. Equal entries keep the order of the catalog and the server.
func (q *query) sort(entries []entry) {
	switch {
	case q.sorter != nil:
		slices.SortStableFunc(entries, func(a, b entry) int { return a.key.Compare(b.key) })
	case q.flat():
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.urgency, b.urgency) })
	}
}

func tableOf(shown []columns.Column, entries []entry) output.Table {
	return output.Table{Headers: columns.Headers(shown), Rows: rowsOf(entries)}
}

func rowsOf(entries []entry) [][]string {
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, e.row)
	}
	return rows
}

func objectsOf(entries []entry) []unstructured.Unstructured {
	var objects []unstructured.Unstructured
	for _, e := range entries {
		objects = append(objects, unstructured.Unstructured{Object: e.object})
	}
	return objects
}
