package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// Page is indented text that is wrapped at the terminal width.
type Page struct {
	B strings.Builder
	// width is the terminal width, or 0 to disable wrapping.
	width int
	// Strong formats text in bold.
	Strong func(string) string
	// Brief limits each problem to about briefLines lines.
	Brief bool
}

const (
	// briefLines is the maximum number of lines of a problem with Brief.
	briefLines = 10
	// briefDetails and briefFixes are the maximum numbers of details and fixes of a longer problem.
	briefDetails, briefFixes = 2, 3
)

// Indent is the indentation of one level.
const Indent = 2

// Line writes a line with a number of indentation levels.
func (p *Page) Line(steps int, text string) {
	p.B.WriteString(p.folded(steps, text) + "\n")
}

func (p *Page) folded(steps int, text string) string {
	return fit.Fold(strings.Repeat(" ", steps*Indent)+printable.Line(budget.Excerpt(redact.Text(text), budget.ErrorText)), (steps+1)*Indent, p.width)
}

// Section writes lines under a title. Without lines, it writes nothing.
func (p *Page) Section(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.Line(1, title)
	for _, line := range lines {
		p.Line(2, line)
	}
}

// Problem writes a root cause, the dependency chain, the other blocked objects and
// the remedies.
func (p *Page) Problem(c diagnose.Cause) {
	whole := Page{Strong: p.Strong}
	if whole.problem(c); p.Brief && strings.Count(whole.B.String(), "\n") > briefLines {
		p.brief(c)
		return
	}
	p.problem(c)
}

// head writes the root cause.
func (p *Page) head(c diagnose.Cause) {
	p.B.WriteString(p.Strong(p.folded(0, "✗ "+c.Root().Object.String()+": "+c.Root().Message)) + "\n")
}

func (p *Page) problem(c diagnose.Cause) {
	p.head(c)
	for _, detail := range c.Root().Details {
		p.Line(2, detail)
	}
	if len(c.Chain) > 1 {
		p.Line(1, "Dependency chain")
		for i, f := range c.Chain {
			text := f.Object.String() + ": " + f.Message
			if p.width > 0 && i == len(c.Chain)-1 { // printed above
				text = f.Object.String()
			}
			p.Line(2+i, text)
		}
	}
	p.Section("Also blocked", listed(c.Blocks))
	p.Section("Fix", c.Root().Remedies())
}

// brief writes the most important lines of a root cause.
func (p *Page) brief(c diagnose.Cause) {
	p.head(c)
	details, fixes := c.Root().Details, c.Root().Remedies()
	for _, detail := range details[:min(len(details), briefDetails)] {
		p.Line(2, detail)
	}
	if n := len(details) - briefDetails; n > 0 {
		p.Line(2, fmt.Sprintf("and %s: --verbose", output.Amount(n, "more line")))
	}
	if len(c.Chain) > 1 {
		p.Line(1, "Dependency chain: "+chainOf(c))
	}
	if len(c.Blocks) > 0 {
		p.Line(1, "Also blocked: "+strings.Join(append([]string{c.Blocks[0].String()}, more(len(c.Blocks)-1)...), " "))
	}
	if last := len(fixes) - 1; last >= briefFixes { // the last fix is the reconcile command
		left := fmt.Sprintf("and %d more: --verbose", last-(briefFixes-2))
		fixes = append(slices.Clip(fixes[:briefFixes-2]), left, fixes[last])
	}
	p.Section("Fix", fixes)
}

// listed returns the first objects, one per line, and the number of omitted ones.
func listed(targets []controllers.ID) []string {
	var lines []string
	for _, t := range targets[:min(len(targets), blockedShown)] {
		lines = append(lines, t.String())
	}
	return append(lines, more(len(targets)-blockedShown)...)
}

// Cause writes the root cause of reported failures, without text that their messages already
// contain. whose lists the failed objects in the titles.
func (p *Page) Cause(c diagnose.Cause, whose, reported string, remedies []string) {
	message := unreported(c.Root().Message, reported)
	switch own := c.Root().Object == c.Object; {
	case !own && message == "":
		message = c.Root().Object.String() + " is not ready"
	case !own:
		message = c.Root().Object.String() + ": " + message
	}
	var details []string
	for _, detail := range c.Root().Details {
		if detail = unreported(detail, reported); detail != "" {
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
		p.Section("Dependency chain", []string{chainOf(c)})
	}
	p.Section("Fix"+target, append(slices.Clip(remedies), c.Root().Remedies()...))
}

func chainOf(c diagnose.Cause) string {
	var chain []string
	for _, f := range c.Chain {
		chain = append(chain, f.Object.String())
	}
	return strings.Join(chain, " → ")
}

// quoted is the minimum length of a repeated text that counts as a quotation.
const quoted = 20

// unreported returns a message without the part that was reported before:
// controllers quote errors of other components.
func unreported(message, reported string) string {
	within := func(text string) bool { return strings.Contains(reported, strings.TrimSuffix(text, "…")) }
	if within(message) {
		return ""
	}
	for i := range message {
		if rest, ok := strings.CutPrefix(message[i:], ": "); ok && len(rest) >= quoted && within(rest) {
			return message[:i]
		}
	}
	return message
}

// more returns a line with the number of objects that are not shown, if any.
func more(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("and %d more", n)}
}

// FactLines returns lines with the applied and the fetched revision, and the time
// of the next fetch.
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

// progressShown is the maximum number of printed objects in progress.
const progressShown = 8

// Progress writes the objects whose reconciliation has just started.
func (p *Page) Progress(cases []diagnose.Cause) {
	for _, c := range cases[:min(len(cases), progressShown)] {
		p.Line(1, c.Root().Object.String()+": "+c.Root().Message)
		for _, detail := range c.Root().Details {
			p.Line(2, detail)
		}
	}
	for _, line := range more(len(cases) - progressShown) {
		p.Line(1, line)
	}
}

// blockedShown is the maximum number of printed blocked objects.
const blockedShown = 8

// NewPage returns a page for standard output.
func NewPage(a *app.App) *Page {
	screen, _ := a.Screen(false)
	p := &Page{width: screen.Width, Strong: func(text string) string { return text }}
	if screen.Color {
		p.Strong = ui.Strong
	}
	return p
}
