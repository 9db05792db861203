package rehearse

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
	"github.com/fluxkit/flux/pkg/rehearse"
)

// Report formats other than text.
var formats = []string{"json", "yaml", "html", "github"}

// headings lists the levels with their headings.
var headings = []struct {
	level rehearse.Level
	text  string
}{
	{rehearse.Breaks, "Breaks"},
	{rehearse.Migrate, "Migrate"},
	{rehearse.Changes, "Changes"},
	{rehearse.Notice, "Notices"},
}

// write writes the report.
func write(a *app.App, format string, r *rehearse.Report) error {
	switch format {
	case "json", "yaml":
		return a.Encode(format, r)
	case "":
		return text(a, r)
	}
	report, err := render.Text(format, append([]*diff.Result{overview(r)}, r.Changes...), render.Style{})
	if err != nil {
		return err
	}
	return a.Document(redact.Text(report))
}

// overview returns the findings as a result that the formats of diff can show.
func overview(r *rehearse.Report) *diff.Result {
	// Comments have a limited number of short lines, so the conclusion comes first, and each remedy is on a
	// separate line.
	o := &diff.Result{Owner: controllers.VersionedID{ID: controllers.ID{Kind: "Flux", Name: r.From + " → " + r.To}}, Builds: true, Warnings: []string{conclusion(r)}}
	for _, heading := range headings {
		for _, f := range r.Findings {
			if f.Level == heading.level {
				all := lines(f)
				all[0] = heading.text + ": " + all[0]
				o.Warnings = append(o.Warnings, all...)
			}
		}
	}
	for _, line := range unknown(r) {
		o.Warnings = append(o.Warnings, "Could not check: "+line)
	}
	return o
}

// lines returns a finding as a line and its details.
func lines(f rehearse.Finding) []string {
	all := []string{printable.Line(f.Object.String()) + ": " + printable.Line(f.Message)}
	if f.File != "" {
		all = append(all, "in "+printable.Line(f.File))
	}
	for _, remedy := range f.Remedies {
		all = append(all, printable.Line(remedy))
	}
	if len(f.Also) > 0 {
		var names []string
		for _, ref := range f.Also {
			names = append(names, printable.Line(ref.String()))
		}
		all = append(all, "also blocked: "+strings.Join(names, ", "))
	}
	return all
}

// unknown lists the results that the rehearsal could not determine.
func unknown(r *rehearse.Report) []string {
	var all []string
	for _, c := range r.Controllers {
		if !c.Exact && c.Unknown != "" {
			all = append(all, fmt.Sprintf("%s %s: %s ran instead; unknown: %s", c.Name, c.To, c.Ran, printable.Line(c.Unknown)))
		}
	}
	for _, line := range r.Unsettled {
		all = append(all, "not reconciled in time: "+printable.Line(line))
	}
	for _, o := range r.NotRehearsed {
		all = append(all, printable.Line(o.Object.String())+": "+printable.Line(o.Reason))
	}
	return all
}

// conclusion returns the result in one sentence.
func conclusion(r *rehearse.Report) string {
	others := 0
	for _, c := range r.Controllers {
		if !c.Exact {
			others++
		}
	}
	var sentence string
	switch r.Result {
	case rehearse.Same:
		sentence = fmt.Sprintf("No differences between Flux %s and %s in %s.", r.From, r.To, output.Amount(r.Objects, "object"))
	case rehearse.Different:
		sentence = fmt.Sprintf("Flux %s differs from %s: %s in %s.", r.To, r.From, render.Totals(r.Changes), output.Amount(r.Objects, "object"))
	default:
		sentence = fmt.Sprintf("The upgrade from Flux %s to %s could not be rehearsed completely.", r.From, r.To)
	}
	if others > 0 {
		sentence += fmt.Sprintf(" %d of %s did not run in the version of Flux %s: changes specific to that version are unknown.",
			others, output.Amount(len(r.Controllers), "controller"), r.To)
	}
	return sentence
}

// text writes the report as text.
func text(a *app.App, r *rehearse.Report) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Upgrade from Flux %s to %s", r.From, r.To)
	if r.Path != "" {
		fmt.Fprintf(&b, ": %s", printable.Line(r.Path))
	}
	b.WriteString("\n")
	for _, heading := range headings {
		var found []string
		for _, f := range r.Findings {
			if f.Level == heading.level {
				found = append(found, "  "+strings.Join(lines(f), "\n    "))
			}
		}
		section(&b, heading.text, found)
	}
	if len(r.Changes) > 0 {
		b.WriteString("\nObjects\n" + render.Human(r.Changes, render.Style{}))
	}
	var not []string
	for _, line := range unknown(r) {
		not = append(not, "  "+line)
	}
	section(&b, "Could not check", not)
	b.WriteString("\n" + conclusion(r) + "\n")
	return a.Print(redact.Text(b.String()))
}

func section(b *bytes.Buffer, heading string, found []string) {
	if len(found) > 0 {
		b.WriteString("\n" + heading + "\n" + strings.Join(found, "\n") + "\n")
	}
}
