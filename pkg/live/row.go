// Package live keeps the Flux objects of a cluster in memory, grouped by root cause. It watches all kinds, and records
// for each kind whether its data is current, so that a user interface does not show old or missing data as the current
// state.
package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// State is the state of an object.
type State string

// The states, in the order of the list. A failed object is a root cause, and a waiting one is blocked by it.
const (
	Failed      State = "Failed"
	Waiting     State = "Waiting"
	Reconciling State = "Reconciling"
	Suspended   State = "Suspended"
	Ready       State = "Ready"
)

var states = []State{Failed, Waiting, Reconciling, Suspended, Ready}

// States returns all states in the order of the list.
func States() []State { return slices.Clone(states) }

func (s State) order() int { return slices.Index(states, s) }

// Key identifies an object in a list. Cluster is "" in the list of one cluster.
type Key struct {
	Cluster string
	ID      controllers.ID
}

// String returns the object, after its cluster if the list has several.
func (k Key) String() string {
	if k.Cluster == "" {
		return k.ID.String()
	}
	return k.Cluster + ": " + k.ID.String()
}

// Row is an object of the list.
type Row struct {
	Key
	// Kind is the catalog entry of the kind, which all rows of the kind share. It is empty if the kind is not in the catalog.
	Kind *controllers.Kind
	// Object is nil for a root cause that is not a Flux object or does not exist.
	Object  controllers.Object
	State   State
	Message string
	// Code is the code of a root cause. Fixes lists the fixes for the object or, if it waits, for its root cause.
	Code  string
	Fixes []string
	// Root is the root cause that the object waits for, or the object itself if it is the root cause of others.
	Root controllers.ID
	// Blocks is the number of objects that wait for this one.
	Blocks   int
	Revision string
	Created  time.Time
	// Suspended is set if the object is suspended, in any state.
	Suspended bool

	group int // the position of the group of rows that belong together
}

// extend sets the state of an object of a project that extends Flux to that of its Ready condition.
func (row *Row) extend() {
	if c, reported := controllers.FindCondition(row.Object, "Ready"); row.State == Ready && c.Status == "False" {
		row.State, row.Fixes = Failed, []string{rules.Kubectl(row.ID, "describe")}
	} else if row.State == Ready && (!reported || c.Status != "True") {
		row.State = Reconciling
	}
}

// rowOf returns the row of an object without problems.
func rowOf(k *controllers.Kind, o controllers.Object) *Row {
	id := controllers.IDOf(o)
	ready := rules.Readiness(*k, o)
	row := &Row{
		Key: Key{ID: id}, Kind: k, Object: o, State: Ready, Message: failure.OneLine(controllers.Shorten(ready.Message)),
		Created: rules.Moment(controllers.Path{"metadata.creationTimestamp"}.String(o)), Suspended: k.Suspension.Is(o),
	}
	if path, ok := reconcile.RevisionPath(*k); ok {
		row.Revision = controllers.Shorten(path.String(o))
	}
	if row.Suspended {
		row.State = Suspended
		row.Message = cmp.Or(controllers.SuspensionReason(o), row.Message)
	}
	return row
}

// arrange sets the states of rows with problems, adds a row for each other root cause, and sorts the rows: the objects that a root
// cause blocks follow it.
func arrange(objects []Row, r diagnose.Result) []Row {
	rows := make(map[controllers.ID]*Row, len(objects))
	for i := range objects {
		rows[objects[i].ID] = &objects[i]
	}
	rank := map[controllers.ID]int{}
	take := func(causes []diagnose.Cause, state State) {
		for _, c := range causes {
			root := c.Root()
			id := root.Object
			row := rows[id]
			if row == nil {
				k, _ := id.Flux()
				row = &Row{Key: Key{ID: id}, Kind: &k}
				rows[id] = row
			}
			if row.Root == id {
				continue // the object has a second problem, which blocks more objects
			}
			row.State, row.Message, row.Code, row.Fixes = state, failure.OneLine(root.Message), root.Code, root.Remedies()
			row.Root, row.Blocks, rank[id] = id, len(c.Blocks), len(rank)
			for _, blocked := range slices.Concat(c.Blocks, root.Cycle) {
				if b := rows[blocked]; b != nil && b.Root == (controllers.ID{}) {
					b.Root, b.Fixes = id, root.Remedies()
					b.State = cmp.Or(map[State]State{Failed: Waiting}[state], state)
				}
			}
		}
	}
	take(r.Causes, Failed)
	take(r.Progress, Reconciling)
	for _, row := range rows {
		if row.group = len(rank) + row.State.order(); row.Root != (controllers.ID{}) {
			row.group = rank[row.Root]
		}
	}
	all := make([]Row, 0, len(rows))
	for _, row := range slices.SortedFunc(maps.Values(rows), compare) {
		all = append(all, *row)
	}
	return all
}

// compare returns the order of rows: root causes, the objects that they block, and other objects, by state.
func compare(a, b *Row) int {
	if a.group != b.group {
		return cmp.Compare(a.group, b.group)
	}
	return cmp.Or(cmp.Compare(a.State.order(), b.State.order()), cmp.Compare(b.Blocks, a.Blocks), a.ID.Compare(b.ID))
}
