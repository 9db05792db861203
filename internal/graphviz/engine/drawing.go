package engine

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/fluxkit/flux/internal/graphviz"
)

// drawing is the part of Graphviz's JSON output that contains positions. Its origin is the lower left corner.
type drawing struct {
	Draw  []operation `json:"_draw_"`
	Nodes []object    `json:"objects"`
	Edges []object    `json:"edges"`
}

// object is a node or an edge, with the arrowhead of an edge.
type object struct {
	Name string      `json:"name"`
	ID   string      `json:"id"`
	Draw []operation `json:"_draw_"`
	Head []operation `json:"_hdraw_"`
}

// operation draws a polygon (p, or P if it is filled) or Bézier curves (b).
type operation struct {
	Op     string       `json:"op"`
	Points [][2]float64 `json:"points"`
}

// parse returns the positions in Graphviz's JSON output.
func parse(output []byte, g graphviz.Graph) (graphviz.Layout, error) {
	var d drawing
	if err := json.Unmarshal(output, &d); err != nil {
		return graphviz.Layout{}, fmt.Errorf("reading the layout: %w", err)
	}
	l := graphviz.Layout{Nodes: make([]graphviz.Point, len(g.Nodes)), Edges: make([]graphviz.Curve, len(g.Edges))}
	frame := points(d.Draw, 0, "P")
	if len(frame) != 4 || len(d.Nodes) != len(g.Nodes) || len(d.Edges) != len(g.Edges) {
		return l, fmt.Errorf("the layout has %d nodes and %d edges, not %d and %d", len(d.Nodes), len(d.Edges), len(g.Nodes), len(g.Edges))
	}
	l.Width, l.Height = frame[2].X, frame[2].Y
	for _, n := range d.Nodes {
		i, err := strconv.Atoi(n.Name)
		corners := points(n.Draw, l.Height, "p")
		if err != nil || i < 0 || i >= len(l.Nodes) || len(corners) != 4 {
			return l, fmt.Errorf("node %q has no position", n.Name)
		}
		l.Nodes[i] = graphviz.Point{X: (corners[0].X + corners[2].X) / 2, Y: (corners[0].Y + corners[2].Y) / 2}
	}
	for _, e := range d.Edges {
		i, err := strconv.Atoi(e.ID)
		curve, head := points(e.Draw, l.Height, "b"), points(e.Head, l.Height, "P")
		if err != nil || i < 0 || i >= len(l.Edges) || len(curve)%3 != 1 || len(head) != 3 {
			return l, fmt.Errorf("edge %q has no position", e.ID)
		}
		l.Edges[i] = graphviz.Curve{Points: curve, Tip: head[1]}
	}
	return l, nil
}

// points returns the points of the first operation of a type. With a height, the origin is the upper left corner.
func points(operations []operation, height float64, op string) []graphviz.Point {
	for _, o := range operations {
		if o.Op != op {
			continue
		}
		all := make([]graphviz.Point, 0, len(o.Points))
		for _, p := range o.Points {
			y := p[1]
			if height > 0 {
				y = height - y
			}
			all = append(all, graphviz.Point{X: p[0], Y: y})
		}
		return all
	}
	return nil
}
