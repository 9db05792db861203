// Package diagram draws boxes and arrows as DOT, Mermaid, SVG or HTML.
package diagram

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Diagram is a graph that is drawn from left to right.
type Diagram struct {
	// Title is printed above the graph.
	Title string
	// Caption explains the arrows; it is printed below the legend.
	Caption string
	Boxes   []Box
	// Arrows connect boxes.
	Arrows []Arrow
}

// Box is a box with one or two lines of text.
type Box struct {
	// ID identifies the box in arrows. It is unique.
	ID string
	// Head and Text are the two lines of the box. Note is its tooltip.
	Head, Text, Note string
	Status           Status
	// Blocked is set if the box is not ready because it waits for others.
	Blocked bool
}

// Arrow connects two boxes.
type Arrow struct {
	From, To, Label string
}

// Status determines the color of a box.
type Status int

// The statuses of a box: unknown, ready, in progress and failed.
const (
	Neutral Status = iota
	Good
	Busy
	Bad
)

// statuses has the class, the word, the mark and the colors of each status. The colors have enough contrast
// for dark text, and are the same as in graph.css.
var statuses = map[Status]struct{ name, text, mark, fill, border string }{
	Neutral: {"neutral", "unknown", "?", "#f4f5f7", "#8a919c"},
	Good:    {"good", "ready", "✔", "#e3f4e7", "#2e7d43"},
	Busy:    {"busy", "in progress", "◎", "#fdf3d8", "#a87b14"},
	Bad:     {"bad", "failed", "✗", "#fbe3e1", "#b3362b"},
}

// Engine lays out graphs. graphviz.Client implements it.
type Engine interface {
	Layout(ctx context.Context, g graphviz.Graph) (graphviz.Layout, error)
}

// Formats returns the output formats.
func Formats() []string { return []string{"dot", "mermaid", "svg", "html"} }

// Draw writes the diagram in one of the Formats.
func (d Diagram) Draw(ctx context.Context, w io.Writer, format string, engine Engine) error {
	d = d.printable()
	var err error
	switch format {
	case "dot":
		_, err = io.WriteString(w, d.dot())
	case "mermaid":
		_, err = io.WriteString(w, d.mermaid())
	case "svg", "html":
		err = d.draw(ctx, w, format, engine)
	default:
		err = fmt.Errorf("unsupported diagram format %q: use %s", format, strings.Join(Formats(), ", "))
	}
	return err
}

// printable returns the diagram with all texts on one line and control characters removed.
func (d Diagram) printable() Diagram {
	fit := Diagram{Title: printable.Line(d.Title), Caption: printable.Line(d.Caption)}
	for _, b := range d.Boxes {
		b.ID, b.Head, b.Text, b.Note = printable.Line(b.ID), printable.Line(b.Head), printable.Line(b.Text), printable.Line(b.Note)
		fit.Boxes = append(fit.Boxes, b)
	}
	for _, a := range d.Arrows {
		fit.Arrows = append(fit.Arrows, Arrow{From: printable.Line(a.From), To: printable.Line(a.To), Label: printable.Line(a.Label)})
	}
	return fit
}

// dot returns the diagram in DOT, the language of Graphviz.
func (d Diagram) dot() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace
	var b strings.Builder
	fmt.Fprintf(&b, "digraph {\n  label=\"%s\"\n  labelloc=t\n  rankdir=LR\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"]\n", quote(d.Title))
	for _, box := range d.Boxes {
		c := statuses[box.Status]
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s\\n%s\", tooltip=\"%s\", fillcolor=\"%s\", color=\"%s\"]\n",
			quote(box.ID), quote(box.Head), quote(box.Text), quote(box.Note), c.fill, c.border)
	}
	for _, a := range d.Arrows {
		fmt.Fprintf(&b, "  \"%s\" -> \"%s\" [label=\"%s\"]\n", quote(a.From), quote(a.To), quote(a.Label))
	}
	return b.String() + "}\n"
}

// mermaid returns the diagram in Mermaid syntax, which many Markdown renderers support.
func (d Diagram) mermaid() string {
	quote := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ").Replace
	number := map[string]int{}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, box := range d.Boxes {
		number[box.ID] = i
		fmt.Fprintf(&b, "  n%d[\"%s<br>%s\"]:::%s\n", i, quote(box.Head), quote(box.Text), statuses[box.Status].name)
	}
	for _, a := range d.Arrows {
		if a.Label == "" {
			fmt.Fprintf(&b, "  n%d --> n%d\n", number[a.From], number[a.To])
			continue
		}
		fmt.Fprintf(&b, "  n%d -->|%s| n%d\n", number[a.From], quote(a.Label), number[a.To])
	}
	for _, status := range []Status{Neutral, Good, Busy, Bad} {
		c := statuses[status]
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#1c1f24\n", c.name, c.fill, c.border)
	}
	return b.String()
}
