package main

import (
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/tree"
)

// traceReport is what trace tells a script.
type traceReport struct {
	Object    objectName   `json:"object"`
	Images    []string     `json:"images,omitempty"`
	Owners    []objectName `json:"owners,omitempty"`
	AppliedBy traceLink    `json:"appliedBy"`
	Sources   []traceLink  `json:"sources"`
}

type objectName struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// traceLink is an object of Flux between a source and the object.
type traceLink struct {
	objectName
	// Error is why the object could not be read; then nothing else is known.
	Error string            `json:"error,omitempty"`
	Spec  map[string]string `json:"spec,omitempty"`
	// Revision is what was last brought about, Commit the commit in it.
	Revision string `json:"revision,omitempty"`
	Commit   string `json:"commit,omitempty"`
	// Attempted is what was last tried.
	Attempted     string     `json:"attempted,omitempty"`
	Origin        *origins   `json:"origin,omitempty"`
	Suspended     bool       `json:"suspended"`
	Ready         string     `json:"ready,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	Message       string     `json:"message,omitempty"`
	Since         *time.Time `json:"since,omitempty"`
	LastSucceeded *time.Time `json:"lastSucceeded,omitempty"`
}

// origins say where an OCI artifact was built from.
type origins struct {
	Revision string `json:"revision,omitempty"`
	Source   string `json:"source,omitempty"`
}

func reportOf(t *tree.Trace) traceReport {
	r := traceReport{Object: named(t.Object), Images: t.Images, AppliedBy: reportLink(t.Applier), Sources: []traceLink{}}
	for _, owner := range t.Owners {
		r.Owners = append(r.Owners, named(owner))
	}
	for _, source := range t.Sources {
		r.Sources = append(r.Sources, reportLink(source))
	}
	return r
}

func named(o tree.Object) objectName {
	return objectName{o.GroupKind.Group, o.GroupKind.Kind, o.Namespace, o.Name}
}

func reportLink(l tree.Link) traceLink {
	link := traceLink{objectName: named(l.Object)}
	if l.Err != nil {
		link.Error = redact.Text(l.Err.Error())
		return link
	}
	link.Spec = map[string]string{}
	for _, f := range traceFields {
		if value := f.path.String(l.Live); value != "" {
			link.Spec[strings.ToLower(strings.ReplaceAll(f.label, " ", ""))] = redact.URL(value)
		}
	}
	out := l.Outcome()
	link.Revision, link.Commit, link.Attempted = out.Revision, commitOf(out.Revision), out.Attempted
	link.Ready, link.Reason, link.Message = out.Status, out.Reason, redact.Text(out.Message)
	link.Since, link.LastSucceeded = known(out.Since), known(out.Good)
	link.Suspended = l.Kind.Suspension.Is(l.Live)
	from := origins{origin(l.Live, originFields[0].annotation), redact.Text(origin(l.Live, originFields[1].annotation))}
	if from != (origins{}) {
		link.Origin = &from
		if link.Commit == "" {
			link.Commit = commitOf(from.Revision)
		}
	}
	return link
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// commitOf is the commit of a Git revision such as main@sha1:6f9a…, "" of others.
func commitOf(revision string) string {
	_, commit, _ := strings.Cut(revision, "@sha1:")
	return commit
}
