package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/fold"
	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// Page is text for people: indented lines, which on a terminal are folded where
// it ends.
type Page struct {
	B strings.Builder
	// width is that of the terminal, 0 where lines stay whole.
	width int
	// Strong makes a text stand out.
	Strong func(string) string
}

// Indent is by how much a line stands in that belongs to the one above it.
const Indent = 2

// Line writes a line that stands in so many steps.
func (p *Page) Line(steps int, text string) {
	p.B.WriteString(p.folded(steps, text) + "\n")
}

func (p *Page) folded(steps int, text string) string {
	return fold.Line(strings.Repeat(" ", steps*Indent)+printable.Line(redact.Text(text)), (steps+1)*Indent, p.width)
}

// Section writes lines below a title; without lines there is none.
func (p *Page) Section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.Line(1, title)
	for _, line := range lines {
		p.Line(2, line)
	}
}

// Case writes the root cause of a case, the dependency chain that leads to
// it, what else it blocks, and the remedies.
func (p *Page) Case(c diagnose.Case) {
	p.B.WriteString(p.Strong(p.folded(0, "✗ "+c.Root.Object.String()+": "+c.Root.Message)) + "\n")
	for _, detail := range c.Root.Details {
		p.Line(2, detail)
	}
	if len(c.Chain) > 1 {
		p.Line(1, "Dependency chain")
		for i, f := range c.Chain {
			text := f.Object.String() + ": " + f.Message
			if p.width > 0 && i == len(c.Chain)-1 { // it stands above, and takes room here
				text = f.Object.String()
			}
			p.Line(2+i, text)
		}
	}
	p.Section("Also blocked", listed(c.Blocks))
	p.Section("Fix", c.Root.Remedies)
}

// listed names the first few objects, a line each, and how many there are more.
func listed(targets []controllers.Target) []string {
	var lines []string
	for _, t := range targets[:min(len(targets), blockedShown)] {
		lines = append(lines, t.String())
	}
	return append(lines, more(len(targets)-blockedShown)...)
}

// Cause writes what is behind failures that have been told already: of the root
// only what that has not said. Whose failures, stands behind the titles.
func (p *Page) Cause(c diagnose.Case, whose, told string, ways []string) {
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
		p.Line(1, "Root cause"+whose)
		target = ""
	}
	if message != "" {
		p.B.WriteString(p.Strong(p.folded(2, message)) + "\n")
	}
	for _, detail := range details {
		p.Line(2, detail)
	}
	if len(c.Chain) > 2 {
		p.Section("Dependency chain", []string{wayOf(c)})
	}
	p.Section("Fix"+target, append(slices.Clip(ways), c.Root.Remedies...))
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

// FactLines say which revision is live, which one is fetched, and when a newer
// one is looked for.
func FactLines(a *app.App, f *diagnose.Facts) []string {
	if f == nil {
		return nil
	}
	var lines []string
	add := func(label, value string, at time.Time, verb string) {
		if value == "" {
			return
		}
		if !at.IsZero() {
			value += ", " + verb + " " + Moment(a, at)
		}
		lines = append(lines, label+": "+value)
	}
	add("Applied", ShortRevision(f.Applied), f.AppliedAt, "reconciled")
	if f.Fetched != "" {
		add("Fetched", ShortRevision(f.Fetched)+" by "+f.Source.String(), f.FetchedAt, "stored")
	}
	switch {
	case f.SourceSuspended:
		lines = append(lines, "Next fetch: none, "+f.Source.String()+" is suspended")
	case !f.NextFetch.IsZero():
		lines = append(lines, "Next fetch: about "+Moment(a, f.NextFetch)+", every "+f.SourceInterval.String())
	case f.SourceInterval > 0:
		lines = append(lines, "Next fetch: within "+f.SourceInterval.String())
	}
	if f.Fetch != "" && !f.SourceSuspended && f.SourceInterval > 0 {
		lines = append(lines, "Fetch now: "+f.Fetch)
	}
	return lines
}

// progressShown is how many objects that are being reconciled are named.
const progressShown = 8

// Progress writes what is being reconciled since a moment ago.
func (p *Page) Progress(cases []diagnose.Case) {
	for _, c := range cases[:min(len(cases), progressShown)] {
		p.Line(1, c.Root.Object.String()+": "+c.Root.Message)
		for _, detail := range c.Root.Details {
			p.Line(2, detail)
		}
	}
	for _, line := range more(len(cases) - progressShown) {
		p.Line(1, line)
	}
}

// blockedShown is how many of the objects that a cause holds up are named.
const blockedShown = 8

// NewPage is an answer on standard output.
func NewPage(a *app.App) *Page {
	screen, _ := a.Screen(false)
	p := &Page{width: screen.Width, Strong: func(text string) string { return text }}
	if screen.Colour {
		p.Strong = ui.Strong
	}
	return p
}
