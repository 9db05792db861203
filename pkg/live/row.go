// Package live keeps the Flux objects of a cluster in memory, grouped by root cause. It watches all kinds, and records
// for each kind whether its data is current, so that a user interface does not show old or missing data as the current
// state.
package live

import (
	"cmp"
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

// States returns all states in the order of the list.
func States() []State { return []State{Failed, Waiting, Reconciling, Suspended, Ready} }

// Row is an object of the list.
type Row struct {
	ID   controllers.ID
	Kind controllers.Kind
	// Object is nil for a root cause that is not a Flux object or does not exist.
	Object  controllers.Object
	State   State
	Message string
	// Code is the code of a root cause. Fixes are the fixes for the root cause, also for objects that wait for it.
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
}

// rowOf returns the row of an object without a problem.
func rowOf(o controllers.Object) Row {
	id := controllers.IDOf(o)
	k, _ := id.Flux()
	ready := rules.Readiness(k, o)
	row := Row{
		ID: id, Kind: k, Object: o, State: Ready, Message: failure.OneLine(controllers.Shorten(ready.Message)),
		Created: rules.Moment(controllers.Path{"metadata.creationTimestamp"}.String(o)), Suspended: k.Suspension.Is(o),
	}
	if path, ok := reconcile.RevisionPath(k); ok {
		row.Revision = controllers.Shorten(path.String(o))
	}
	if row.Suspended {
		row.State = Suspended
		row.Message = cmp.Or(controllers.SuspensionReason(o), row.Message)
	}
	return row
}

// arrange returns a row for each object and for each other root cause. The objects that a root cause blocks follow it.
func arrange(objects []controllers.Object, r diagnose.Result) []Row {
	rows := make(map[controllers.ID]*Row, len(objects))
	for _, o := range objects {
		row := rowOf(o)
		rows[row.ID] = &row
	}
	rank := map[controllers.ID]int{}
	take := func(causes []diagnose.Cause, state State) {
		for _, c := range causes {
			root := c.Root()
			id := root.Object
			row := rows[id]
			if row == nil {
				k, _ := id.Flux()
				row = &Row{ID: id, Kind: k}
				rows[id] = row
			}
			if row.Root == id {
				continue // another problem of the object blocks more objects
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
	all := make([]Row, 0, len(rows))
	for _, row := range rows {
		all = append(all, *row)
	}
	order := map[State]int{}
	for i, state := range States() {
		order[state] = i
	}
	group := func(row Row) int {
		if row.Root == (controllers.ID{}) {
			return len(rank) + order[row.State]
		}
		return rank[row.Root]
	}
	slices.SortFunc(all, func(a, b Row) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(order[a.State], order[b.State]),
			cmp.Compare(b.Blocks, a.Blocks), a.ID.Compare(b.ID))
	})
	return all
}
