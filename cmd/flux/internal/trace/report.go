package trace

import (
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// traceReport is the JSON and YAML output.
type traceReport struct {
	Object    controllers.ID   `json:"object"`
	Images    []string         `json:"images,omitempty"`
	Owners    []controllers.ID `json:"owners,omitempty"`
	AppliedBy report.Link      `json:"appliedBy"`
	Sources   []report.Link    `json:"sources"`
}

func reportOf(t *tree.Trace) traceReport {
	r := traceReport{Object: t.Object, Images: t.Images, Owners: t.Owners, AppliedBy: report.LinkOf(t.Applier), Sources: []report.Link{}}
	for _, source := range t.Sources {
		r.Sources = append(r.Sources, report.LinkOf(source))
	}
	return r
}
