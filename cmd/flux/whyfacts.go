package main

import (
	"time"

	"github.com/fluxkit/flux/pkg/diagnose"
)

// factsReport is which revisions are behind an object, for a script.
type factsReport struct {
	Object             objectName  `json:"object"`
	Applied            string      `json:"appliedRevision,omitempty"`
	AppliedAt          *time.Time  `json:"appliedAt,omitempty"`
	NextReconciliation *time.Time  `json:"nextReconciliation,omitempty"`
	Interval           string      `json:"interval,omitempty"`
	Source             *objectName `json:"source,omitempty"`
	Fetched            string      `json:"fetchedRevision,omitempty"`
	FetchedAt          *time.Time  `json:"fetchedAt,omitempty"`
	NextFetch          *time.Time  `json:"nextFetch,omitempty"`
	SourceInterval     string      `json:"sourceInterval,omitempty"`
	SourceSuspended    bool        `json:"sourceSuspended,omitempty"`
}

func factsReportOf(f *diagnose.Facts) *factsReport {
	if f == nil {
		return nil
	}
	r := &factsReport{
		Object: targetName(f.Object), Applied: f.Applied, AppliedAt: known(f.AppliedAt), NextReconciliation: known(f.NextReconciliation),
		Interval: spanText(f.Interval), Fetched: f.Fetched, FetchedAt: known(f.FetchedAt), NextFetch: known(f.NextFetch),
		SourceInterval: spanText(f.SourceInterval), SourceSuspended: f.SourceSuspended,
	}
	if f.Source.Name != "" {
		source := targetName(f.Source)
		r.Source = &source
	}
	return r
}

// factLines say which revision is live, which one is fetched, and when a newer
// one is looked for.
func (a *app) factLines(f *diagnose.Facts) []string {
	if f == nil {
		return nil
	}
	var lines []string
	add := func(label, value string, at time.Time, verb string) {
		if value == "" {
			return
		}
		if !at.IsZero() {
			value += ", " + verb + " " + a.moment(at)
		}
		lines = append(lines, label+": "+value)
	}
	add("Applied", shortRevision(f.Applied), f.AppliedAt, "reconciled")
	if f.Fetched != "" {
		add("Fetched", shortRevision(f.Fetched)+" by "+f.Source.String(), f.FetchedAt, "stored")
	}
	switch {
	case f.SourceSuspended:
		lines = append(lines, "Next fetch: none, "+f.Source.String()+" is suspended")
	case !f.NextFetch.IsZero():
		lines = append(lines, "Next fetch: about "+a.moment(f.NextFetch)+", every "+f.SourceInterval.String())
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

// progress writes what is being reconciled since a moment ago.
func (p *page) progress(cases []diagnose.Case) {
	for _, c := range cases[:min(len(cases), progressShown)] {
		p.line(1, c.Root.Object.String()+": "+c.Root.Message)
		for _, detail := range c.Root.Details {
			p.line(2, detail)
		}
	}
	for _, line := range more(len(cases) - progressShown) {
		p.line(1, line)
	}
}
