package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/graphviz/engine"
)

// graph is a graph of boxes with different widths.
type graph struct {
	graphviz.Graph
	random *rand.Rand
}

func newGraph(seed uint64, nodes int) *graph {
	g := &graph{random: rand.New(rand.NewPCG(seed, 7))} // deterministic
	for range nodes {
		g.Nodes = append(g.Nodes, graphviz.Size{Width: 60 + float64(g.random.IntN(300)), Height: 44})
	}
	return g
}

func (g *graph) connect(from, to int) { g.Edges = append(g.Edges, graphviz.Edge{From: from, To: to}) }

// anything has random edges, also parallel ones, self-loops and cycles.
func anything(seed uint64, nodes, edges int) *graph {
	g := newGraph(seed, nodes)
	for range edges {
		g.connect(g.random.IntN(nodes), g.random.IntN(nodes))
	}
	return g
}

// managed is a tree, as flux tree draws.
func managed(seed uint64, nodes int) *graph {
	g := newGraph(seed, nodes)
	for i := 1; i < nodes; i++ {
		g.connect(g.random.IntN(1+i/8), i)
	}
	return g
}

// depending has sources, the objects that use them, and their dependencies, as flux deps draws, with
// some cycles and self-loops.
func depending(seed uint64, nodes int) *graph {
	g := newGraph(seed, nodes)
	sources := 1 + nodes/50
	for i := sources; i < nodes; i++ {
		g.connect(g.random.IntN(sources), i)
		for range g.random.IntN(3) {
			g.connect(max(sources, i-1-g.random.IntN(60)), i)
		}
		if i%100 == 0 {
			g.connect(i, max(sources, i-20))
			g.connect(i, i)
		}
	}
	return g
}

// TestLayout checks that boxes are inside of the frame, do not overlap, and that no edge crosses a box other than its
// ends.
func TestLayout(t *testing.T) {
	t.Parallel()
	graphs := map[string]*graph{
		"one node":            newGraph(1, 1),
		"nodes without edge":  newGraph(1, 30),
		"star":                newGraph(1, 200),
		"chain":               newGraph(1, 500),
		"ring":                newGraph(1, 300),
		"tree of 500":         managed(1, 500),
		"dependencies of 500": depending(1, 500),
	}
	for i := 1; i < 200; i++ {
		graphs["star"].connect(0, i)
	}
	for i := range 300 {
		graphs["ring"].connect(i, (i+1)%300)
		graphs["chain"].connect(i, i+1)
	}
	for seed := range uint64(30) {
		graphs[fmt.Sprintf("anything %d", seed)] = anything(seed, 1+int(seed), 2*int(seed))
		graphs[fmt.Sprintf("tree %d", seed)] = managed(seed, 5+2*int(seed))
		graphs[fmt.Sprintf("dependencies %d", seed)] = depending(seed, 5+3*int(seed))
	}
	graphs["an edge that touches a node"] = anything(128, 9, 16)
	e := engine.New()
	for name, g := range graphs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := e.Layout(t.Context(), g.Graph)
			if err != nil {
				t.Fatal(err)
			}
			checkNodes(t, g.Graph, l)
			checkEdges(t, g.Graph, l)
		})
	}
}

// box is the rectangle of a node.
type box struct{ left, top, right, bottom float64 }

func boxes(g graphviz.Graph, l graphviz.Layout) []box {
	var all []box
	for i, n := range g.Nodes {
		c := l.Nodes[i]
		all = append(all, box{c.X - n.Width/2, c.Y - n.Height/2, c.X + n.Width/2, c.Y + n.Height/2})
	}
	return all
}

func (b box) contains(p graphviz.Point) bool {
	return b.left < p.X && p.X < b.right && b.top < p.Y && p.Y < b.bottom
}

func checkNodes(t *testing.T, g graphviz.Graph, l graphviz.Layout) {
	t.Helper()
	all := boxes(g, l)
	for i, a := range all {
		const rounding = 0.01
		if a.left < -rounding || a.top < -rounding || a.right > l.Width+rounding || a.bottom > l.Height+rounding {
			t.Errorf("box %d lies outside: %+v in %+v", i, a, l.Size)
		}
		for j, b := range all[i+1:] {
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				t.Errorf("boxes %d %+v and %d %+v overlap", i, a, i+1+j, b)
			}
		}
	}
}

// checkEdges samples the curves of all edges.
func checkEdges(t *testing.T, g graphviz.Graph, l graphviz.Layout) {
	t.Helper()
	all := boxes(g, l)
	for i, e := range g.Edges {
		for _, p := range samples(l.Edges[i]) {
			for j, b := range all {
				if j != e.From && j != e.To && b.contains(p) {
					t.Fatalf("edge %d from %d to %d crosses node %d: %+v in %+v", i, e.From, e.To, j, p, b)
				}
			}
		}
		const near = 12 // the ends touch the nodes
		from, to, start, tip := all[e.From], all[e.To], l.Edges[i].Points[0], l.Edges[i].Tip
		if !from.grown(near).contains(start) || !to.grown(near).contains(tip) {
			t.Errorf("edge %d leads from %+v to %+v, not from %+v to %+v", i, start, tip, from, to)
		}
	}
}

func (b box) grown(by float64) box { return box{b.left - by, b.top - by, b.right + by, b.bottom + by} }

// samples returns points of a curve.
func samples(c graphviz.Curve) []graphviz.Point {
	const steps = 20
	all := []graphviz.Point{c.Tip}
	for i := 0; i+3 < len(c.Points); i += 3 {
		for step := range steps + 1 {
			p := c.Points[i : i+4]
			t := float64(step) / steps
			at := func(a, b, c, d float64) float64 {
				u := 1 - t
				return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d
			}
			all = append(all, graphviz.Point{X: at(p[0].X, p[1].X, p[2].X, p[3].X), Y: at(p[0].Y, p[1].Y, p[2].Y, p[3].Y)})
		}
	}
	return all
}

// TestDirection checks that edges point to the right, except for those that close a cycle.
func TestDirection(t *testing.T) {
	t.Parallel()
	g := managed(3, 40)
	l, err := engine.New().Layout(t.Context(), g.Graph)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range g.Edges {
		if l.Nodes[e.From].X >= l.Nodes[e.To].X {
			t.Errorf("node %d is not to the left of %d", e.From, e.To)
		}
	}
}

// TestDeterministic checks that the layout depends on the graph only.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	g := depending(5, 60)
	first, err := engine.New().Layout(t.Context(), g.Graph)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New()
	for range 2 { // with new and with used code
		again, err := e.Layout(t.Context(), g.Graph)
		if diff := cmp.Diff(first, again); diff != "" || err != nil {
			t.Errorf("%v (-first +again):\n%s", err, diff)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, e := range []graphviz.Edge{{From: 0, To: 1}, {From: -1, To: 0}} {
		g := graphviz.Graph{Nodes: []graphviz.Size{{Width: 1, Height: 1}}, Edges: []graphviz.Edge{e}}
		if _, err := engine.New().Layout(t.Context(), g); err == nil || !strings.Contains(err.Error(), "edge 0 connects nodes that do not exist") {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// TestMemory checks that a graph that is too large is an error.
func TestMemory(t *testing.T) {
	t.Parallel()
	g := newGraph(1, 100_000)
	for i := range 100_000 {
		g.connect(0, i)
	}
	if _, err := engine.New().Layout(t.Context(), g.Graph); err == nil || !strings.Contains(err.Error(), "requires more than 128 MiB of memory") {
		t.Error(err)
	}
}
