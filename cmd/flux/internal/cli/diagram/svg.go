package diagram

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// The dimensions in pixels. The width of text is estimated from the number of
// characters, with enough space for usual fonts.
const (
	margin    = 24
	headline  = 40
	boxHeight = 44
	rowGap    = 14
	columnGap = 90
	letter    = 7.4
	padding   = 12
	longest   = 48
)

// svg returns the diagram as SVG.
func (d Diagram) svg() string {
	at := d.layout()
	width, height := 0, 0
	for _, p := range at {
		width, height = max(width, p.x+p.width), max(height, p.y+boxHeight)
	}
	width = max(width, int(float64(utf8.RuneCountInString(d.Title))*9)+margin) + margin
	height = max(height, headline) + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(d.Title))
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#6b7280"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/><text x="%d" y="28" font-size="16" font-weight="600" fill="#1c1f24">%s</text>`+"\n", margin, html.EscapeString(d.Title))
	for _, a := range d.Arrows {
		b.WriteString(arrow(at[a.From], at[a.To]))
	}
	for _, a := range d.Arrows {
		b.WriteString(label(at[a.From], at[a.To], a.Label))
	}
	for _, box := range d.Boxes {
		b.WriteString(box.draw(at[box.ID]))
	}
	return b.String() + "</svg>\n"
}

func (box Box) draw(p place) string {
	c := colors[box.Status]
	note := strings.TrimSpace(box.Head + " " + box.Text + "\n" + box.Note)
	return fmt.Sprintf(`<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>`+
		`<text x="%d" y="%d" fill="#4b5563" font-size="11">%s</text><text x="%d" y="%d" fill="#1c1f24" font-weight="600">%s</text></g>`+"\n",
		html.EscapeString(note), p.x, p.y, p.width, boxHeight, c.fill, c.border,
		p.x+padding, p.y+17, html.EscapeString(cut(box.Head)), p.x+padding, p.y+34, html.EscapeString(cut(box.Text)))
}

// arrow returns a curve from the right side of a box to the left side of another.
func arrow(from, to place) string {
	x1, y1, x2, y2 := from.x+from.width, from.y+boxHeight/2, to.x, to.y+boxHeight/2
	bend := columnGap / 2
	if x2 <= x1 {
		bend = columnGap
	}
	return fmt.Sprintf(`<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="#6b7280" marker-end="url(#tip)"/>`+"\n", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
}

// label returns the text in the middle of an arrow.
func label(from, to place, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(`<text x="%d" y="%d" text-anchor="middle" fill="#4b5563" font-size="10" stroke="#ffffff" stroke-width="4" paint-order="stroke">%s</text>`+"\n",
		(from.x+from.width+to.x)/2, (from.y+to.y+boxHeight)/2+3, html.EscapeString(text))
}

func cut(text string) string {
	if utf8.RuneCountInString(text) <= longest {
		return text
	}
	return string([]rune(text)[:longest-1]) + "…"
}

// html returns a self-contained page with the diagram.
func (d Diagram) html() string {
	return "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>" + html.EscapeString(d.Title) + "</title>\n" +
		"<style>body{margin:0;overflow:auto}</style>\n<body>\n" + d.svg() + "</body>\n</html>\n"
}
