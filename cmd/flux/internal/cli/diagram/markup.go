package diagram

import (
	"crypto/sha256"
	_ "embed" // the page, its styles and its script
	"encoding/base64"
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/terminal/fit"
)

//go:embed page.html
var page string

// graphStyle is the style of the graph in both formats.
//
//go:embed graph.css
var graphStyle string

//go:embed page.css
var pageStyle string

// script adds zoom, folding and search. The page is complete without it. It reads only the text of elements.
//
//go:embed page.js
var script string

// tip is the arrowhead.
const tip = `<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>` + "\n"

// svg returns an SVG file with the picture, its title and its legend.
func (p picture) svg() string {
	size := p.legendSize()
	const large = 9.5 // the width of a letter in the title
	for _, line := range []float64{p.Width, float64(fit.Width(p.caption)) * letter, float64(fit.Width(p.title)) * large} {
		size.Width = max(size.Width, math.Ceil(line))
	}
	below := headline + p.Height + margin
	size.Width, size.Height = size.Width+2*margin, below+size.Height+legendRow+margin
	var b strings.Builder
	b.WriteString(opening(size, "img", p.title, ` xmlns="http://www.w3.org/2000/svg"`))
	b.WriteString("<style>" + graphStyle + "</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n")
	fmt.Fprintf(&b, `<text class="title" x="%d" y="30">%s</text>`+"\n", margin, html.EscapeString(p.title))
	p.writeGraph(&b, headline)
	fmt.Fprintf(&b, `<g transform="translate(%d %v)">`+"\n", margin, below)
	p.writeLegend(&b)
	fmt.Fprintf(&b, `<text y="%d">%s</text>`+"\n</g>\n</svg>\n", len(p.legend)*legendRow+13, html.EscapeString(p.caption))
	return b.String()
}

// html returns a self-contained page.
func (p picture) html() string {
	var failures, legend, graph strings.Builder
	p.writeFailures(&failures)
	legend.WriteString(opening(p.legendSize(), "img", "Legend", ""))
	p.writeLegend(&legend)
	legend.WriteString("</svg>\n")
	graph.WriteString(opening(graphviz.Size{Width: p.Width + 2*margin, Height: p.Height + 2*margin}, "group", p.title, ""))
	p.writeGraph(&graph, margin)
	graph.WriteString("</svg>\n")
	style := graphStyle + pageStyle
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + digest(style) + "; script-src " + digest(script)
	return strings.NewReplacer(
		"${policy}", policy, "${style}", style, "${script}", script, "${title}", html.EscapeString(p.title), "${caption}", html.EscapeString(p.caption),
		"${failures}", failures.String(), "${legend}", legend.String(), "${graph}", graph.String(),
	).Replace(page)
}

// digest returns the Content-Security-Policy source that allows an inline text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// opening returns the start tag of a picture.
func opening(size graphviz.Size, role, label, attributes string) string {
	return fmt.Sprintf(`<svg%[1]s class="graph" width="%[2]v" height="%[3]v" viewBox="0 0 %[2]v %[3]v" role="%[4]s" aria-label="%[5]s">`+"\n",
		attributes, size.Width, size.Height, role, html.EscapeString(label))
}

// writeGraph writes the arrows, and the boxes above them.
func (p picture) writeGraph(b *strings.Builder, top int) {
	fmt.Fprintf(b, `<g transform="translate(%d %d)">`+"\n", margin, top)
	b.WriteString(tip)
	for _, e := range p.edges {
		fmt.Fprintf(b, `<path class="edge %s" data-from="%s" data-to="%s" d="%s" marker-end="url(#tip)"><title>%s</title></path>`+"\n",
			html.EscapeString(e.label), e.from, e.to, e.path, html.EscapeString(e.title))
	}
	for _, n := range p.nodes {
		fmt.Fprintf(b, `<g class="node %s" id="%s" transform="translate(%v %v)"><title>%s</title>`, n.status, n.id, n.x, n.y, html.EscapeString(n.title))
		fmt.Fprintf(b, `<rect width="%[1]v" height="%[2]d" rx="6"/><svg width="%[1]v" height="%[2]d">`, n.width, boxHeight)
		fmt.Fprintf(b, `<text class="kind" x="%[1]d" y="17">%[2]s</text><text class="name" x="%[1]d" y="34">%[3]s</text></svg></g>`+"\n",
			padding, html.EscapeString(n.head), html.EscapeString(n.text))
	}
	b.WriteString("</g>\n")
}

func (p picture) legendSize() graphviz.Size {
	size := graphviz.Size{Height: float64(len(p.legend) * legendRow)}
	for _, r := range p.legend {
		size.Width = max(size.Width, math.Ceil(sample+float64(fit.Width(r.text))*letter))
	}
	return size
}

// writeLegend writes the samples of statuses and arrows.
func (p picture) writeLegend(b *strings.Builder) {
	for i, r := range p.legend {
		fmt.Fprintf(b, `<g transform="translate(0 %d)">`, i*legendRow)
		if r.status != "" {
			fmt.Fprintf(b, `<g class="node %s"><rect x="1" y="2" width="28" height="14" rx="3"/></g>`, r.status)
		} else {
			fmt.Fprintf(b, `<path class="edge %s" d="M0 9H30" marker-end="url(#tip)"/>`, html.EscapeString(r.label))
		}
		fmt.Fprintf(b, `<text x="%d" y="13">%s</text></g>`+"\n", sample, html.EscapeString(r.text))
	}
}

// writeFailures writes the list of boxes that are not ready, unless it is empty.
func (p picture) writeFailures(b *strings.Builder) {
	if len(p.failures) == 0 {
		return
	}
	fmt.Fprintf(b, "<section id=\"failures\">\n<h2>Not ready: %d of %d</h2>\n<ol>\n", len(p.failures), len(p.nodes))
	for _, n := range p.failures {
		fmt.Fprintf(b, `<li class="%s"><a href="#%s"><small>%s</small><b>%s</b>%s</a></li>`+"\n",
			n.status, n.id, html.EscapeString(n.head), html.EscapeString(n.text), html.EscapeString(n.note))
	}
	b.WriteString("</ol>\n</section>\n")
}
