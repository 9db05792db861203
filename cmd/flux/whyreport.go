package main

import (
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// verdictReport is the diagnosis as scripts read it.
type verdictReport struct {
	Healthy bool          `json:"healthy"`
	Looked  int           `json:"looked"`
	Summary summaryReport `json:"summary"`
	Cases   []caseReport  `json:"cases"`
	// Progress has what has been reconciling for a moment only.
	Progress []caseReport `json:"progress,omitempty"`
	Facts    *factsReport `json:"facts,omitempty"`
	// Unapplied has the commits that the source has fetched and that are not live.
	Unapplied *commitsReport `json:"unapplied,omitempty"`
	Unknown   []string       `json:"unknown,omitempty"`
}

// summaryReport counts problems, their root causes, and those of these that are
// reported.
type summaryReport struct {
	Problems   int `json:"problems"`
	RootCauses int `json:"rootCauses"`
	Shown      int `json:"shown"`
}

type caseReport struct {
	Object objectName      `json:"object"`
	Root   findingReport   `json:"root"`
	Chain  []findingReport `json:"chain"`
	Blocks []objectName    `json:"blocks"`
}

type findingReport struct {
	Object   objectName `json:"object"`
	Code     string     `json:"code"`
	Message  string     `json:"message"`
	Details  []string   `json:"details,omitempty"`
	Remedies []string   `json:"remedies,omitempty"`
}

func verdictReportOf(v diagnose.Verdict) verdictReport {
	r := verdictReport{Healthy: len(v.Cases)+len(v.Progress)+len(v.Unknown) == 0, Looked: v.Looked, Cases: []caseReport{}, Facts: factsReportOf(v.Facts), Unknown: v.Unknown}
	r.Summary = summaryReport{v.Problems, v.RootCauses, len(v.Cases)}
	for _, c := range v.Cases {
		r.Cases = append(r.Cases, caseReportOf(c))
	}
	for _, c := range v.Progress {
		r.Progress = append(r.Progress, caseReportOf(c))
	}
	return r
}

func caseReportOf(c diagnose.Case) caseReport {
	report := caseReport{Object: targetName(c.Object), Root: findingReportOf(c.Root), Blocks: []objectName{}}
	for _, f := range c.Chain {
		report.Chain = append(report.Chain, findingReportOf(f))
	}
	for _, t := range c.Blocks {
		report.Blocks = append(report.Blocks, targetName(t))
	}
	return report
}

func findingReportOf(f diagnose.Finding) findingReport {
	r := findingReport{Object: targetName(f.Object), Code: f.Code, Message: redact.Text(f.Message)}
	for _, detail := range f.Details {
		r.Details = append(r.Details, redact.Text(detail))
	}
	for _, remedy := range f.Remedies {
		r.Remedies = append(r.Remedies, redact.Text(remedy))
	}
	return r
}

func targetName(t controllers.Target) objectName {
	k, _ := controllers.FindKind(t.Kind)
	return objectName{k.Group, t.Kind, t.Namespace, t.Name}
}
