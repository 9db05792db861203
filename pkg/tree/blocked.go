package tree

import (
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The limits of the lists of a graph. The objects of a cluster can have so many
// circular dependencies and root causes that their number grows with the square
// of the number of objects.
const (
	maxCycles   = 100
	maxBlockers = 100
)

// findCycles finds the cycles among the edges that wait, each once.
func (g *Graph) findCycles() {
	const done = -1
	at := map[controllers.ID]int{} // the position on the path, from 1
	var way []controllers.ID
	var walk func(o controllers.ID)
	walk = func(o controllers.ID) {
		way = append(way, o)
		at[o] = len(way)
		for _, e := range g.From(o) {
			switch position := at[e.To]; {
			case !e.Waits() || position == done:
			case position == 0:
				walk(e.To)
			case len(g.Cycles) == maxCycles:
				g.MoreCycles = true
			default:
				g.Cycles = append(g.Cycles, turned(way[position-1:]))
			}
		}
		way, at[o] = way[:len(way)-1], done
	}
	for _, v := range g.Vertices {
		if at[v.Object] == 0 {
			walk(v.Object)
		}
	}
}

// turned rotates a cycle to start at its first object in alphabetical order.
func turned(cycle []controllers.ID) []controllers.ID {
	first := 0
	for i, o := range cycle {
		if o.String() < cycle[first].String() {
			first = i
		}
	}
	return slices.Concat(cycle[first:], cycle[:first])
}

// out reports whether an object is missing or not ready.
func (v *Vertex) out() bool { return v.Missing || v.Ready != "" && v.Ready != "True" }

// awaited returns the objects that an object waits for and that are missing or
// not ready.
func (g *Graph) awaited(o controllers.ID) []controllers.ID {
	var all []controllers.ID
	for _, e := range g.From(o) {
		if e.Waits() && g.at[e.To].out() {
			all = append(all, e.To)
		}
	}
	return all
}

// block sets BlockedBy of the objects that are missing or not ready to the ends of their chains of
// such objects. Objects that wait for each other form a group with the same ends. Tarjan's
// algorithm finds the groups, each after the groups that it waits for.
func (g *Graph) block() {
	b := &blocking{Graph: g, number: map[controllers.ID]int{}, lowest: map[controllers.ID]int{}, open: map[controllers.ID]bool{}, ends: map[controllers.ID]bool{}}
	for _, v := range g.Vertices {
		if v.out() && b.number[v.Object] == 0 {
			b.visit(v.Object)
		}
	}
}

type blocking struct {
	*Graph
	// number is the position in the order of visits, and lowest the lowest number that is reachable
	// from an object.
	number, lowest map[controllers.ID]int
	// open holds the objects on the stack, whose group is not complete. ends holds the objects that do
	// not wait for others.
	open, ends map[controllers.ID]bool
	stack      []controllers.ID
}

func (b *blocking) visit(o controllers.ID) {
	b.number[o] = len(b.number) + 1
	b.lowest[o] = b.number[o]
	b.open[o] = true
	b.stack = append(b.stack, o)
	awaited := b.awaited(o)
	b.ends[o] = len(awaited) == 0
	for _, to := range awaited {
		if b.number[to] == 0 {
			b.visit(to)
			b.lowest[o] = min(b.lowest[o], b.lowest[to])
		} else if b.open[to] {
			b.lowest[o] = min(b.lowest[o], b.number[to])
		}
	}
	if b.lowest[o] != b.number[o] {
		return
	}
	start := len(b.stack) - 1
	for b.stack[start] != o {
		start--
	}
	group := slices.Clone(b.stack[start:])
	b.stack = b.stack[:start]
	b.settle(group)
}

// settle sets BlockedBy of a group from the objects that it waits for.
func (b *blocking) settle(group []controllers.ID) {
	var ends []controllers.ID
	more := false
	known := map[controllers.ID]bool{}
	add := func(o controllers.ID) {
		if known[o] {
			return
		}
		if len(ends) == maxBlockers {
			more = true
			return
		}
		known[o], ends = true, append(ends, o)
	}
	for _, o := range group {
		for _, to := range b.awaited(o) {
			if b.open[to] {
				continue // of the group
			}
			if b.ends[to] {
				add(to)
			}
			more = more || b.at[to].MoreBlockers
			for _, end := range b.at[to].BlockedBy {
				add(end)
			}
		}
	}
	for _, o := range group {
		delete(b.open, o)
		b.at[o].BlockedBy, b.at[o].MoreBlockers = slices.Clip(ends), more
	}
}

// Blocks returns the objects that are not ready because of a root cause, in the
// order of the vertices.
func (g *Graph) Blocks(root controllers.ID) []controllers.ID {
	v := g.at[root]
	if v == nil || !v.out() || len(g.awaited(root)) > 0 {
		return nil
	}
	found := map[controllers.ID]bool{root: true}
	for queue := []controllers.ID{root}; len(queue) > 0; queue = queue[1:] {
		for _, e := range g.To(queue[0]) {
			if e.Waits() && g.at[e.From].out() && !found[e.From] {
				found[e.From] = true
				queue = append(queue, e.From)
			}
		}
	}
	delete(found, root)
	var all []controllers.ID
	for _, v := range g.Vertices {
		if found[v.Object] {
			all = append(all, v.Object)
		}
	}
	return all
}
