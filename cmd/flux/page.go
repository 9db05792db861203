package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/fold"
	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// page is text for people: indented lines, which on a terminal are folded where
// it ends.
type page struct {
	b strings.Builder
	// width is that of the terminal, 0 where lines stay whole.
	width int
	// strong makes a text stand out.
	strong func(string) string
}

// indent is by how much a line stands in that belongs to the one above it.
const indent = 2

// line writes a line that stands in so many steps.
func (p *page) line(steps int, text string) {
	p.b.WriteString(p.folded(steps, text) + "\n")
}

func (p *page) folded(steps int, text string) string {
	return fold.Line(strings.Repeat(" ", steps*indent)+printable.Line(redact.Text(text)), (steps+1)*indent, p.width)
}

// section writes lines below a title; without lines there is none.
func (p *page) section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.line(1, title)
	for _, line := range lines {
		p.line(2, line)
	}
}

// whole writes the root cause of a case, the dependency chain that leads to
// it, what else it blocks, and the remedies.
func (p *page) whole(c diagnose.Case) {
	p.b.WriteString(p.strong(p.folded(0, "✗ "+c.Root.Object.String()+": "+c.Root.Message)) + "\n")
	for _, detail := range c.Root.Details {
		p.line(2, detail)
	}
	if len(c.Chain) > 1 {
		p.line(1, "Dependency chain")
		for i, f := range c.Chain {
			text := f.Object.String() + ": " + f.Message
			if p.width > 0 && i == len(c.Chain)-1 { // it stands above, and takes room here
				text = f.Object.String()
			}
			p.line(2+i, text)
		}
	}
	p.section("Also blocked", listed(c.Blocks))
	p.section("Fix", c.Root.Remedies)
}

// listed names the first few objects, a line each, and how many there are more.
func listed(targets []controllers.Target) []string {
	var lines []string
	for _, t := range targets[:min(len(targets), blockedShown)] {
		lines = append(lines, t.String())
	}
	return append(lines, more(len(targets)-blockedShown)...)
}

// cause writes what is behind failures that have been told already: of the root
// only what that has not said. Whose failures, stands behind the titles.
func (p *page) cause(c diagnose.Case, whose, told string, ways []string) {
	message := unsaid(c.Root.Message, told)
	switch own := c.Root.Object == c.Object; {
	case !own && message == "":
		message = c.Root.Object.String() + " is not ready"
	case !own:
		message = c.Root.Object.String() + ": " + message
	}
	var details []string
	for _, detail := range c.Root.Details {
		if detail = unsaid(detail, told); detail != "" {
			details = append(details, detail)
		}
	}
	target := strings.Replace(whose, " ", " for ", 1)
	if whose != "" {
		whose = " of" + whose
	}
	if message != "" || len(details) > 0 {
		p.line(1, "Root cause"+whose)
		target = ""
	}
	if message != "" {
		p.b.WriteString(p.strong(p.folded(2, message)) + "\n")
	}
	for _, detail := range details {
		p.line(2, detail)
	}
	if len(c.Chain) > 2 {
		p.section("Dependency chain", []string{wayOf(c)})
	}
	p.section("Fix"+target, append(slices.Clip(ways), c.Root.Remedies...))
}

func wayOf(c diagnose.Case) string {
	var way []string
	for _, f := range c.Chain {
		way = append(way, f.Object.String())
	}
	return strings.Join(way, " → ")
}

// enough is how long a text is that is not repeated by chance.
const enough = 20

// unsaid is what a message says beyond what is said already: controllers quote
// what is wrong, and the quotation needs not stand there twice.
func unsaid(message, said string) string {
	within := func(text string) bool { return strings.Contains(said, strings.TrimSuffix(text, "…")) }
	if within(message) {
		return ""
	}
	for i := range message {
		if rest, ok := strings.CutPrefix(message[i:], ": "); ok && len(rest) >= enough && within(rest) {
			return message[:i]
		}
	}
	return message
}

// more says how many there are that are not shown, where there are any.
func more(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("and %d more", n)}
}
