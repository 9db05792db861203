package diagram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/fit"
)

// The dimensions in pixels. The text width is estimated from the number of characters, with enough space for common
// fonts; wider text is clipped.
const (
	margin    = 24
	headline  = 52
	boxHeight = 44
	letter    = 7.4
	padding   = 12
	longest   = 48
	legendRow = 20
	// sample is the width of a sample in the legend.
	sample = 38
	// longestNote is the maximum length of a message in the list of failures.
	longestNote = 2000
)

// picture is a diagram with positions.
type picture struct {
	title, caption string
	graphviz.Size
	nodes    []node
	edges    []edge
	failures []node
	legend   []row
}

// node is a box with its upper left corner.
type node struct {
	id, status, head, text, note, title string
	x, y, width                         float64
}

type edge struct {
	from, to, label, title, path string
}

// row is a row of the legend: a status, or a type of arrows.
type row struct {
	status, label, text string
}

// draw writes the diagram as SVG or HTML.
func (d Diagram) draw(ctx context.Context, w io.Writer, format string, engine Engine) error {
	d = d.sorted()
	g := d.graph()
	layout, err := engine.Layout(ctx, g)
	var limit *budget.ExceededError
	var failed *helper.Error
	if errors.As(err, &limit) || errors.As(err, &failed) {
		return hint.Errorf("select fewer objects, or use --output dot", "%w", err)
	}
	if err != nil {
		return err
	}
	p := d.picture(g, layout)
	text := p.svg
	if format == "html" {
		text = p.html
	}
	_, err = io.WriteString(w, text())
	return err
}

// sorted returns the diagram with its boxes and arrows in an order that depends on their texts only.
func (d Diagram) sorted() Diagram {
	d.Boxes, d.Arrows = slices.Clone(d.Boxes), slices.Clone(d.Arrows)
	slices.SortStableFunc(d.Boxes, func(a, b Box) int {
		return cmp.Or(strings.Compare(a.Head, b.Head), strings.Compare(a.Text, b.Text), strings.Compare(a.ID, b.ID))
	})
	slices.SortStableFunc(d.Arrows, func(a, b Arrow) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To), strings.Compare(a.Label, b.Label))
	})
	return d
}

// graph returns the sizes of the boxes and the arrows between them.
func (d Diagram) graph() graphviz.Graph {
	g, at := graphviz.Graph{}, map[string]int{}
	for i, box := range d.Boxes {
		at[box.ID] = i
		columns := max(fit.Width(d.head(box)), fit.Width(box.text()))
		g.Nodes = append(g.Nodes, graphviz.Size{Width: math.Ceil(float64(columns)*letter) + 2*padding, Height: boxHeight})
	}
	for _, a := range d.Arrows {
		g.Edges = append(g.Edges, graphviz.Edge{From: at[a.From], To: at[a.To]})
	}
	return g
}

// head returns the first line of a box, with the mark of its status.
func (d Diagram) head(box Box) string {
	head := fit.CutMiddle(box.Head, longest)
	if d.rated() {
		head = statuses[box.Status].mark + " " + head
	}
	return head
}

// rated reports whether the statuses of the boxes are known.
func (d Diagram) rated() bool {
	return slices.ContainsFunc(d.Boxes, func(box Box) bool { return box.Status != Neutral })
}

// text returns the second line of a box.
func (box Box) text() string { return fit.CutMiddle(box.Text, longest) }

// picture returns the diagram with the positions of a layout.
func (d Diagram) picture(g graphviz.Graph, l graphviz.Layout) picture {
	p := picture{title: d.Title, caption: d.Caption, legend: d.legend(), Size: graphviz.Size{Width: math.Ceil(l.Width), Height: math.Ceil(l.Height)}}
	for i, box := range d.Boxes {
		center, width := l.Nodes[i], g.Nodes[i].Width
		n := node{
			id: "n" + strconv.Itoa(i), status: statuses[box.Status].name, head: d.head(box), text: box.text(), note: fit.CutWords(box.Note, longestNote),
			x: round(center.X - width/2), y: round(center.Y - boxHeight/2), width: width,
		}
		n.title = strings.TrimSpace(box.Head + " " + box.Text + "\n" + n.note)
		p.nodes = append(p.nodes, n)
	}
	for i, a := range d.Arrows {
		from, to := g.Edges[i].From, g.Edges[i].To
		title := d.Boxes[from].Text + " → " + d.Boxes[to].Text
		if a.Label != "" {
			title = a.Label + ": " + title
		}
		p.edges = append(p.edges, edge{p.nodes[from].id, p.nodes[to].id, a.Label, title, path(l.Edges[i])})
	}
	p.failures = d.failures(p.nodes)
	return p
}

// failures returns the boxes that are not ready: failed boxes first, starting with boxes that do not wait for
// others.
func (d Diagram) failures(nodes []node) []node {
	var found []int
	for i, box := range d.Boxes {
		if box.Status == Bad || box.Status == Busy {
			found = append(found, i)
		}
	}
	rank := func(i int) int {
		switch box := d.Boxes[i]; {
		case box.Status == Busy:
			return 2
		case box.Blocked:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(found, func(a, b int) int { return rank(a) - rank(b) })
	var failed []node
	for _, i := range found {
		failed = append(failed, nodes[i])
	}
	return failed
}

// legend returns the statuses and the types of arrows that occur in the diagram.
func (d Diagram) legend() []row {
	count, labels := map[Status]int{}, []string{}
	for _, box := range d.Boxes {
		count[box.Status]++
	}
	for _, a := range d.Arrows {
		labels = append(labels, a.Label)
	}
	var rows []row
	for _, status := range []Status{Bad, Busy, Good, Neutral} {
		s := statuses[status]
		if count[status] > 0 && d.rated() {
			rows = append(rows, row{status: s.name, text: fmt.Sprintf("%s %s: %d", s.mark, s.text, count[status])})
		}
	}
	slices.Sort(labels)
	for _, label := range slices.Compact(labels) {
		if label != "" {
			rows = append(rows, row{label: label, text: label})
		}
	}
	return rows
}

// path returns a curve as SVG path data.
func path(c graphviz.Curve) string {
	var b strings.Builder
	for i, p := range append(slices.Clone(c.Points), c.Tip) {
		switch {
		case i == 0:
			b.WriteByte('M')
		case i == len(c.Points):
			b.WriteByte('L')
		case i == 1:
			b.WriteByte('C')
		default:
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%v %v", round(p.X), round(p.Y))
	}
	return b.String()
}

// round rounds to a tenth of a pixel.
func round(x float64) float64 { return math.Round(x*10) / 10 }
