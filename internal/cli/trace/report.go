package trace

import (
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/pkg/tree"
)

// traceReport is the JSON and YAML output.
type traceReport struct {
	Object    report.ObjectName   `json:"object"`
	Images    []string            `json:"images,omitempty"`
	Owners    []report.ObjectName `json:"owners,omitempty"`
	AppliedBy report.Link         `json:"appliedBy"`
	Sources   []report.Link       `json:"sources"`
}

func reportOf(t *tree.Trace) traceReport {
	r := traceReport{Object: report.NameOfNode(t.Object), Images: t.Images, AppliedBy: report.LinkOf(t.Applier), Sources: []report.Link{}}
	for _, owner := range t.Owners {
		r.Owners = append(r.Owners, report.NameOfNode(owner))
	}
	for _, source := range t.Sources {
		r.Sources = append(r.Sources, report.LinkOf(source))
	}
	return r
}
