// Package graphviz defines the helper process job that lays out graphs. The job receives sizes and returns
// positions: the names of objects are not passed to Graphviz.
package graphviz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job of the helper process that lays out a graph, and the argument of its process.
const Job helper.Call[Graph, Layout] = "graphviz"

// limit is the maximum time to lay out a graph. Graphviz lays out 1000 objects with 2000 dependencies in 7 seconds.
const limit = time.Minute

// Graph is a graph to lay out from left to right. All lengths are in points.
type Graph struct {
	Nodes []Size `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Size is the size of a node.
type Size struct {
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// Edge connects two nodes by their index.
type Edge struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Layout contains the positions of the nodes and edges of a graph, in the order of the graph. The origin is the upper
// left corner.
type Layout struct {
	Size
	// Nodes contains the centers of the nodes.
	Nodes []Point `json:"nodes"`
	Edges []Curve `json:"edges"`
}

// Point is a position.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Curve is a sequence of cubic Bézier curves: a start, and three points for each curve. A straight line
// connects the end of the last curve with the tip of the arrow.
type Curve struct {
	Points []Point `json:"points"`
	Tip    Point   `json:"tip"`
}

// Client lays out graphs in a helper process.
type Client struct{ process *helper.Process }

// New returns the client of a pool.
func New(pool *helper.Pool) Client {
	return Client{helper.Shared(pool, string(Job), func() *helper.Process { return pool.Process("", pool.Named(), string(Job)) })}
}

// Layout lays out a graph.
func (c Client) Layout(ctx context.Context, g Graph) (Layout, error) {
	title := fmt.Sprintf("drawing %d objects", len(g.Nodes))
	slow := &budget.ExceededError{Name: title, Fact: fmt.Sprintf("takes longer than %s", limit)}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, slow)
	defer cancel()
	l, err := Job.Do(ctx, c.process, title, g)
	if err == nil && (len(l.Nodes) != len(g.Nodes) || len(l.Edges) != len(g.Edges)) {
		err = errors.New(title + ": wrong number of results")
	}
	return l, err
}
