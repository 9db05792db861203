// Package render writes the report of a test in each format.
package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// The output formats.
const (
	human  = "human"
	github = "github"
	junit  = "junit"
	html   = "html"
)

// Formats returns the output formats.
func Formats() []string { return []string{human, "json", "yaml", github, junit, html} }

// Write writes the report in all formats, human to standard output by default.
func Write(a *app.App, outputs []command.Output, r *examine.Report) error {
	if len(outputs) == 0 {
		outputs = []command.Output{{Format: human}}
	}
	for _, output := range outputs {
		to := func(w io.Writer) error { return writeTo(w, output.Format, r) }
		err := error(nil)
		if output.File == "" {
			err = to(a.Output(output.Format))
		} else {
			err = app.WriteReport(a, output.File, output.Format, output.Format == "json", to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeTo(w io.Writer, format string, r *examine.Report) error {
	switch format {
	case human:
		_, err := io.WriteString(w, text(r))
		return err
	case github:
		_, err := io.WriteString(w, annotations(r))
		return err
	case junit:
		return suites(r).Write(w)
	case html:
		return page(w, r)
	}
	return app.EncodeTo(w, format, r)
}

// disruptions is the title for disruptive timeline entries.
const disruptions = "Disruptive changes"

// text returns the report as text.
func text(r *examine.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Flux %s", r.Flux)
	if r.Path != "" {
		b.WriteString(": " + printable.Line(r.Path))
	}
	b.WriteString("\n")
	for _, heading := range []struct{ status, title string }{
		{settle.Ready, "Ready, in this order"}, {settle.NotReady, "Not ready"}, {settle.NotReconciled, "Not reconciled"},
	} {
		var lines []string
		for _, s := range r.Objects {
			switch {
			case s.Status != heading.status:
			case s.Status == settle.Ready:
				lines = append(lines, fmt.Sprintf("%6.1fs  %s (%.1fs)", s.After, printable.Line(s.Object.String()), s.Took))
			default:
				lines = append(lines, "  "+printable.Line(described(r, s)))
			}
		}
		if len(lines) > 0 {
			b.WriteString("\n" + heading.title + "\n" + strings.Join(lines, "\n") + "\n")
		}
	}
	if r.Timeline != nil {
		list(&b, "Not ready with the base "+r.Timeline.Base, statuses(r.Timeline.NotReady))
		list(&b, "Timeline after "+r.Timeline.Base, lines(r))
	}
	for _, s := range sections(r) {
		if len(s.Findings) == 0 || s.Title == disruptions {
			continue // the timeline contains the disruptions
		}
		b.WriteString("\n" + s.Title + "\n")
		for _, f := range s.Findings {
			b.WriteString("  " + f.Name() + ": " + printable.Line(f.Message) + "\n")
			for _, line := range f.Details {
				b.WriteString("    " + printable.Line(line) + "\n")
			}
		}
	}
	list(&b, "Tests", testLines(r))
	list(&b, "Generated", generated(r))
	list(&b, "Could not check", r.Unknown)
	return b.String()
}

// shortMessage is the maximum length of a message that the text report repeats in several sections.
const shortMessage = 80

// described returns an object that is not ready with its message. It omits a long message if another section explains the object.
func described(r *examine.Report, s settle.Status) string {
	name := s.Object.String()
	explained := slices.ContainsFunc(r.Causes, func(c examine.Cause) bool { return c.Object == s.Object || slices.Contains(c.Blocks, s.Object) }) ||
		slices.ContainsFunc(r.Unknown, func(line string) bool { return strings.Contains(line, name+": "+s.Message) })
	switch {
	case !explained || len(s.Message) <= shortMessage:
		return name + ": " + s.Message
	case strings.HasPrefix(s.Message, settle.Uninstalled):
		return name + ": " + settle.Uninstalled
	}
	return name
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		b.WriteString("\n" + title + "\n")
	}
	for _, line := range lines {
		b.WriteString("  " + printable.Line(line) + "\n")
	}
}

func statuses(all []settle.Status) []string {
	var lines []string
	for _, s := range all {
		lines = append(lines, s.Object.String()+": "+s.Message)
	}
	return lines
}

// lines returns the entries of the timeline as lines. A long message that a controller repeats is shown once.
func lines(r *examine.Report) []string {
	type failure struct {
		object  controllers.ID
		message string
	}
	shown := map[failure]bool{}
	var all []string
	for _, e := range r.Timeline.Entries {
		if of := (failure{e.Object, e.Message}); shown[of] {
			e.Message = "the same failure as before"
		} else if e.Action == timeline.Failed && len(e.Message) > shortMessage {
			shown[of] = true
		}
		all = append(all, e.String())
	}
	return all
}

// generated describes the generated Secrets and ConfigMaps without their values.
func generated(r *examine.Report) []string {
	var lines []string
	for _, n := range r.Generated {
		lines = append(lines, n.Object.String()+" with "+strings.Join(n.Keys, ", "))
	}
	return lines
}

// annotations returns the findings as workflow commands.
func annotations(r *examine.Report) string {
	var b strings.Builder
	for _, s := range sections(r) {
		for _, f := range s.Findings {
			text := f.Object.String() + ": " + f.Message
			if len(f.Details) > 0 {
				text += " (" + strings.Join(f.Details, "; ") + ")"
			}
			b.WriteString(cireport.Annotation{Level: f.Level, Title: f.Rule, File: f.File, Text: text}.String())
		}
	}
	b.WriteString(testAnnotations(r))
	for _, line := range r.Unknown {
		b.WriteString(cireport.Annotation{Level: "warning", Title: "unknown", Text: line}.String())
	}
	return b.String()
}

// suites returns a test case for each Flux resource, and for each other failure.
func suites(r *examine.Report) *cireport.Suites {
	name := r.Path
	if name == "" {
		name = "flux test"
	}
	suite := cireport.Suite{Name: printable.Line(name)}
	causes := map[controllers.ID]examine.Cause{}
	for _, c := range r.Causes {
		causes[c.Object] = c
		for _, ref := range c.Blocks {
			causes[ref] = c
		}
	}
	for _, s := range r.Objects {
		c := cireport.Case{Name: printable.Line(s.Object.String()), Seconds: s.Took}
		cause, found := causes[s.Object]
		message := printable.Line(s.Message)
		switch {
		case found && cause.Object != s.Object:
			message = "blocked by " + printable.Line(cause.Object.String())
		case found:
			message = printable.Line(cause.Object.String() + ": " + cause.Message)
		}
		switch {
		case s.Status == settle.Suspended, s.Status != settle.Ready && !found && len(r.Unknown) > 0:
			c.Skipped = &cireport.Problem{Type: s.Status, Message: message}
		case s.Status != settle.Ready:
			c.Failures = []cireport.Problem{{Type: s.Status, Message: message}}
		}
		suite.Add(c)
	}
	for _, s := range sections(r) {
		for _, f := range s.Findings {
			if f.Rule == "conflict" && f.Level == "error" {
				suite.Add(cireport.Case{Name: printable.Line(f.Object.String()), Failures: []cireport.Problem{{Type: f.Rule, Message: printable.Line(f.Message)}}})
			}
		}
	}
	for _, line := range r.Unknown {
		suite.Add(cireport.Case{Name: "could not check", Skipped: &cireport.Problem{Message: printable.Line(line)}})
	}
	var all cireport.Suites
	all.Add(suite)
	testSuites(&all, r)
	return &all
}
