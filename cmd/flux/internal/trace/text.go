package trace

import (
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type traceRow struct{ label, value string }

// section is a block of rows with aligned values.
type section []traceRow

func (s *section) add(label, value string) {
	if value != "" {
		*s = append(*s, traceRow{label, value})
	}
}

// printTrace prints the text of Flux 2.9 with the kind of the object, and with
// additional rows for images, owners and failures.
func printTrace(a *app.App, t *tree.Trace, kind string) error {
	var head section
	head.add("Object", kind+"/"+t.Object.Name)
	head.add("Namespace", t.Object.Namespace)
	head.add("Images", strings.Join(t.Images, ", "))
	for _, owner := range t.Owners {
		head.add("Owned by", owner.Kind+"/"+owner.Name)
	}
	head.add("Status", "Managed by Flux")
	sections := []section{head, linkSection(t.Applier)}
	for _, source := range t.Sources {
		if source.Kind.Kind == controllers.ChartKind && unremarkable(t.Applier, source) {
			continue
		}
		sections = append(sections, linkSection(source))
	}
	width := len("GitRepository:") + 3
	if t.Applier.Kind.Release {
		width = len("HelmRepository:") + 1
	}
	var b strings.Builder
	for _, s := range sections {
		for _, row := range s {
			width = max(width, len(row.label)+2)
		}
	}
	for i, s := range sections {
		if i > 0 {
			b.WriteString("---")
		}
		b.WriteString("\n")
		for _, row := range s {
			b.WriteString(printable.Line(row.label) + ":" + strings.Repeat(" ", width-len(row.label)-1) + printable.Line(row.value) + "\n")
		}
	}
	return a.Printf("%s", b.String())
}

// unremarkable reports whether the chart status adds nothing to the release status, and the release
// status does not refer to the chart. Flux 2.9 prints every chart that the status refers to.
func unremarkable(release, chart tree.Link) bool {
	if (controllers.Path{"status.helmChart"}).String(release.Live) != "" {
		return false
	}
	return release.Outcome().Status == "True" || chart.Err == nil && chart.Outcome().Status == "True"
}

func linkSection(l tree.Link) section {
	var s section
	s.add(l.Object.Kind, l.Object.Name)
	s.add("Namespace", l.Object.Namespace)
	if l.Err != nil {
		s.add("Status", report.Unreadable(l.Err))
		return s
	}
	for _, f := range report.LinkFields {
		value := f.Path.String(l.Live)
		if f.Label == "URL" {
			value = redact.URL(value)
		}
		s.add(f.Label, value)
	}
	out := l.Outcome()
	s.addRevisions(l, out)
	for _, f := range report.OriginFields {
		s.add(f.Label, redact.Text(report.Origin(l.Live, f.Annotation)))
	}
	if l.Kind.Suspension.Is(l.Live) {
		s.add("Suspended", "true"+report.SuspendNote(l.Live))
	}
	s.add("Status", outcomeText(out))
	if out.Status != "True" && !out.LastSuccess.IsZero() {
		s.add("Last Success", out.LastSuccess.String())
	}
	s.add("Message", redact.Text(out.Message))
	return s
}

// addRevisions adds the applied revision and the revision of a failed attempt. For releases, Flux
// 2.9 prints the attempted revision.
func (s *section) addRevisions(l tree.Link, out tree.Outcome) {
	other := "Attempted"
	if l.Kind.Release && out.Attempted != "" {
		out.Revision, out.Attempted, other = out.Attempted, out.Revision, "Deployed"
	}
	s.add("Revision", out.Revision)
	if out.Status != "True" && out.Attempted != out.Revision {
		s.add(other, out.Attempted)
	}
}

func outcomeText(out tree.Outcome) string {
	words, known := map[string]string{"True": "Last reconciled at", "False": "Last reconciliation failed at"}[out.Status]
	if !known {
		words = "Reconciling since"
	}
	if out.Since.IsZero() {
		return words[:strings.LastIndex(words, " ")]
	}
	return words + " " + out.Since.String()
}
