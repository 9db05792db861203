package report

import (
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// Diagnosis is the JSON form of a diagnosis.
type Diagnosis struct {
	// Object is the diagnosed object, if there are several.
	Object  *controllers.ID `json:"object,omitempty"`
	Healthy bool            `json:"healthy"`
	Checked int             `json:"checked"`
	Summary Summary         `json:"summary"`
	Cases   []Case          `json:"cases"`
	// Progress has the objects whose reconciliation has just started.
	Progress []Case `json:"progress,omitempty"`
	Facts    *Facts `json:"facts,omitempty"`
	// Unapplied has the fetched commits that are not applied.
	Unapplied *Commits `json:"unapplied,omitempty"`
	Unknown   []string `json:"unknown,omitempty"`
}

// Summary counts the problems, their root causes and the reported root causes.
type Summary struct {
	Problems   int `json:"problems"`
	RootCauses int `json:"rootCauses"`
	Shown      int `json:"shown"`
}

// Case is a problem, for JSON.
type Case struct {
	Object controllers.ID   `json:"object"`
	Root   Finding          `json:"root"`
	Chain  []Finding        `json:"chain"`
	Blocks []controllers.ID `json:"blocks"`
}

// Finding is a finding of the diagnosis, for JSON.
type Finding struct {
	Object   controllers.ID `json:"object"`
	Code     string         `json:"code"`
	Message  string         `json:"message"`
	Details  []string       `json:"details,omitempty"`
	Remedies []string       `json:"remedies,omitempty"`
}

// DiagnosisOf returns a diagnosis for JSON.
func DiagnosisOf(v diagnose.Result) Diagnosis {
	r := Diagnosis{Healthy: len(v.Causes)+len(v.Progress)+len(v.Unknown) == 0, Checked: v.Checked, Cases: []Case{}, Facts: factsOf(v.Facts), Unknown: v.Unknown}
	r.Summary = Summary{v.Problems, v.RootCauses, len(v.Causes)}
	for _, c := range v.Causes {
		r.Cases = append(r.Cases, caseOf(c))
	}
	for _, c := range v.Progress {
		r.Progress = append(r.Progress, caseOf(c))
	}
	budget.ShortenTexts(&r)
	return r
}

func caseOf(c diagnose.Cause) Case {
	report := Case{Object: c.Object, Root: findingOf(*c.Root()), Blocks: append([]controllers.ID{}, c.Blocks...)}
	for _, f := range c.Chain {
		report.Chain = append(report.Chain, findingOf(f))
	}
	return report
}

func findingOf(f rules.Finding) Finding {
	r := Finding{Object: f.Object, Code: f.Code, Message: redact.Text(f.Message)}
	for _, detail := range f.Details {
		r.Details = append(r.Details, redact.Text(detail))
	}
	for _, remedy := range f.Remedies() {
		r.Remedies = append(r.Remedies, redact.Text(remedy))
	}
	return r
}

// Facts has the revisions of an object and its source, for JSON.
type Facts struct {
	Object             controllers.ID  `json:"object"`
	Applied            string          `json:"appliedRevision,omitempty"`
	AppliedAt          *time.Time      `json:"appliedAt,omitempty"`
	NextReconciliation *time.Time      `json:"nextReconciliation,omitempty"`
	Interval           string          `json:"interval,omitempty"`
	Source             *controllers.ID `json:"source,omitempty"`
	Fetched            string          `json:"fetchedRevision,omitempty"`
	FetchedAt          *time.Time      `json:"fetchedAt,omitempty"`
	NextFetch          *time.Time      `json:"nextFetch,omitempty"`
	SourceInterval     string          `json:"sourceInterval,omitempty"`
	SourceSuspended    bool            `json:"sourceSuspended,omitempty"`
}

func factsOf(f *diagnose.Facts) *Facts {
	if f == nil {
		return nil
	}
	r := &Facts{
		Object: f.Object, Applied: f.Applied, AppliedAt: TimeOrNil(f.AppliedAt), NextReconciliation: TimeOrNil(f.NextReconciliation),
		Interval: Duration(f.Interval), Fetched: f.Fetched, FetchedAt: TimeOrNil(f.FetchedAt), NextFetch: TimeOrNil(f.NextFetch),
		SourceInterval: Duration(f.SourceInterval), SourceSuspended: f.SourceSuspended,
	}
	if f.Source.Name != "" {
		r.Source = &f.Source
	}
	return r
}
