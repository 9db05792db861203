package main

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// traceFields are what is said of an object of Flux before its outcome, in the
// order of Flux 2.9; of a kind those that it has.
var traceFields = []struct {
	label string
	path  controllers.Path
}{
	{"Target", controllers.Path{"spec.targetNamespace"}},
	{"Path", controllers.Path{"spec.path"}},
	{"Chart", controllers.Path{"spec.chart"}},
	{"Version", controllers.Path{"spec.version"}},
	{"URL", controllers.Path{"spec.url"}},
	{"Endpoint", controllers.Path{"spec.endpoint"}},
	{"Bucket Name", controllers.Path{"spec.bucketName"}},
	{"Branch", controllers.Path{"spec.ref.branch"}},
	{"Tag", controllers.Path{"spec.ref.tag"}},
	{"Semver", controllers.Path{"spec.ref.semver"}},
	{"Digest", controllers.Path{"spec.ref.digest"}},
	{"Reference", controllers.Path{"spec.ref.name"}},
	{"Commit", controllers.Path{"spec.ref.commit"}},
}

// originFields are what the builder of an OCI artifact noted of its origin
// (OCI image specification, annotations).
var originFields = []struct{ label, annotation string }{
	{"Origin Revision", "org.opencontainers.image.revision"},
	{"Origin Source", "org.opencontainers.image.source"},
}

type traceRow struct{ label, value string }

// section is a part of the text: rows whose values stand in line.
type section []traceRow

func (s *section) add(label, value string) {
	if value != "" {
		*s = append(*s, traceRow{label, value})
	}
}

// printTrace writes the text of Flux 2.9, and more only where that says nothing:
// images, owners, and what failed.
func (a *app) printTrace(t *tree.Trace) error {
	var head section
	head.add("Object", t.Object.GroupKind.Kind+"/"+t.Object.Name)
	head.add("Namespace", t.Object.Namespace)
	head.add("Images", strings.Join(t.Images, ", "))
	for _, owner := range t.Owners {
		head.add("Owned by", owner.GroupKind.Kind+"/"+owner.Name)
	}
	head.add("Status", "Managed by Flux")
	sections := []section{head, linkSection(t.Applier)}
	for _, source := range t.Sources {
		if source.Kind.Kind == "HelmChart" && unremarkable(t.Applier, source) {
			continue
		}
		sections = append(sections, linkSection(source))
	}
	width := len("GitRepository:") + 3
	if t.Applier.Kind.Kind == "HelmRelease" {
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
	return a.printf("%s", b.String())
}

// unremarkable tells whether a chart says nothing that its release does not.
func unremarkable(release, chart tree.Link) bool {
	return release.Outcome().Status == "True" || chart.Err == nil && chart.Outcome().Status == "True"
}

func linkSection(l tree.Link) section {
	var s section
	s.add(l.Object.GroupKind.Kind, l.Object.Name)
	s.add("Namespace", l.Object.Namespace)
	if l.Err != nil {
		s.add("Status", unreadable(l.Err))
		return s
	}
	for _, f := range traceFields {
		value := f.path.String(l.Live)
		if f.label == "URL" {
			value = redact.URL(value)
		}
		s.add(f.label, value)
	}
	out := l.Outcome()
	s.add("Revision", out.Revision)
	if out.Status != "True" && out.Attempted != out.Revision {
		s.add("Attempted", out.Attempted)
	}
	for _, f := range originFields {
		s.add(f.label, redact.Text(origin(l.Live, f.annotation)))
	}
	if l.Kind.Suspension.Is(l.Live) {
		s.add("Suspended", "true"+noted(l.Live))
	}
	s.add("Status", outcomeText(out))
	if out.Status != "True" && !out.Good.IsZero() {
		s.add("Last Success", out.Good.String())
	}
	s.add("Message", redact.Text(out.Message))
	return s
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

func unreadable(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "Not found"
	case apierrors.IsForbidden(err):
		return "Unknown: you may not read it"
	default:
		return "Unknown: " + redact.Text(err.Error())
	}
}

// origin is an annotation of a source's artifact.
func origin(o controllers.Object, annotation string) string {
	v, _ := controllers.Path{"status.artifact.metadata"}.Lookup(o)
	metadata, _ := v.(map[string]any)
	text, _ := metadata[annotation].(string)
	return text
}
