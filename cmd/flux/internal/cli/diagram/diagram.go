// Package diagram draws boxes and arrows as DOT, Mermaid, SVG or HTML.
package diagram

import (
	"fmt"
	"io"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Diagram is a graph that is drawn from left to right.
type Diagram struct {
	// Title is printed above the graph.
	Title string
	Boxes []Box
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

// colors are the fill and border colors, all with enough contrast for dark text.
var colors = map[Status]struct{ fill, border string }{
	Neutral: {"#f4f5f7", "#8a919c"},
	Good:    {"#e3f4e7", "#2e7d43"},
	Busy:    {"#fdf3d8", "#a87b14"},
	Bad:     {"#fbe3e1", "#b3362b"},
}

// Formats returns the output formats.
func Formats() []string { return []string{"dot", "mermaid", "svg", "html"} }

// Draw writes the diagram in one of the Formats.
func (d Diagram) Draw(w io.Writer, format string) error {
	d = d.printable()
	draw, ok := map[string]func() string{"dot": d.dot, "mermaid": d.mermaid, "svg": d.svg, "html": d.html}[format]
	if !ok {
		return fmt.Errorf("unsupported diagram format %q: use %s", format, strings.Join(Formats(), ", "))
	}
	_, err := io.WriteString(w, draw())
	return err
}

// printable returns the diagram with all texts on one line and control characters removed.
func (d Diagram) printable() Diagram {
	fit := Diagram{Title: printable.Line(d.Title)}
	for _, b := range d.Boxes {
		b.ID, b.Head, b.Text, b.Note = printable.Line(b.ID), printable.Line(b.Head), printable.Line(b.Text), printable.Line(b.Note)
		fit.Boxes = append(fit.Boxes, b)
	}
	for _, a := range d.Arrows {
		fit.Arrows = append(fit.Arrows, Arrow{From: printable.Line(a.From), To: printable.Line(a.To), Label: printable.Line(a.Label)})
	}
	return fit
}

// dot returns the diagram in the language of Graphviz.
func (d Diagram) dot() string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace
	var b strings.Builder
	fmt.Fprintf(&b, "digraph {\n  label=\"%s\"\n  labelloc=t\n  rankdir=LR\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"]\n", quote(d.Title))
	for _, box := range d.Boxes {
		c := colors[box.Status]
		fmt.Fprintf(&b, "  \"%s\" [label=\"%s\\n%s\", tooltip=\"%s\", fillcolor=\"%s\", color=\"%s\"]\n",
			quote(box.ID), quote(box.Head), quote(box.Text), quote(box.Note), c.fill, c.border)
	}
	for _, a := range d.Arrows {
		fmt.Fprintf(&b, "  \"%s\" -> \"%s\" [label=\"%s\"]\n", quote(a.From), quote(a.To), quote(a.Label))
	}
	return b.String() + "}\n"
}

// mermaid returns the diagram in the language of Mermaid, which Markdown renderers draw.
func (d Diagram) mermaid() string {
	quote := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ").Replace
	number := map[string]int{}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, box := range d.Boxes {
		number[box.ID] = i
		fmt.Fprintf(&b, "  n%d[\"%s<br>%s\"]:::%s\n", i, quote(box.Head), quote(box.Text), statusNames[box.Status])
	}
	for _, a := range d.Arrows {
		if a.Label == "" {
			fmt.Fprintf(&b, "  n%d --> n%d\n", number[a.From], number[a.To])
			continue
		}
		fmt.Fprintf(&b, "  n%d -->|%s| n%d\n", number[a.From], quote(a.Label), number[a.To])
	}
	for _, status := range []Status{Neutral, Good, Busy, Bad} {
		c := colors[status]
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s,color:#1c1f24\n", statusNames[status], c.fill, c.border)
	}
	return b.String()
}

var statusNames = map[Status]string{Neutral: "neutral", Good: "good", Busy: "busy", Bad: "bad"}
