package render

import (
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/examine"
)

// section is a part of the text report: findings with details.
type section struct {
	Title    string
	Findings []finding
}

// finding is a line with its details.
type finding struct {
	// Level is the level of annotations.
	Level, Rule string
	Object      controllers.ID
	Message     string
	File        string
	Details     []string
}

// Name returns the object and its file, "" without an object.
func (f finding) Name() string {
	if f.Object.Kind == "" {
		return ""
	}
	name := printable.Line(f.Object.String())
	if f.File != "" {
		name += " in " + printable.Line(f.File)
	}
	return name
}

// sections returns all findings.
func sections(r *examine.Report) []section {
	causes, missing, conflicts := section{Title: "Root causes"}, section{Title: "Missing"}, section{Title: "Applied by several owners"}
	for _, c := range r.Causes {
		f := finding{Level: "error", Rule: "not-ready", Object: c.Object, Message: c.Message, File: c.File, Details: append(append([]string{}, c.Details...), c.Remedies...)}
		if len(c.Blocks) > 0 {
			f.Details = append(f.Details, "also blocked: "+controllers.JoinNames(c.Blocks, ", "))
		}
		causes.Findings = append(causes.Findings, f)
	}
	for _, n := range r.Missing {
		missing.Findings = append(missing.Findings, finding{
			Level: "warning", Rule: "missing", Object: n.Object, Message: "required by " + controllers.JoinNames(n.NeededBy, ", "), Details: []string{n.Remedy},
		})
	}
	for _, c := range r.Conflicts {
		f := finding{Level: "warning", Rule: "conflict", Object: c.Object, Message: "applied by " + controllers.JoinNames(c.Owners, ", ") + ", with the same contents", File: c.File}
		if c.Differs {
			f.Level, f.Message = "error", "applied by "+controllers.JoinNames(c.Owners, ", ")+": they revert each other's changes"
			f.Details = append(f.Details, "remove the object from all owners except one")
		}
		if len(c.Fields) > 0 {
			f.Details = append([]string{"they set different values for " + strings.Join(c.Fields, ", ")}, f.Details...)
		}
		conflicts.Findings = append(conflicts.Findings, f)
	}
	return append([]section{causes, missing, conflicts}, others(r)...)
}

// others returns the findings that are not failures.
func others(r *examine.Report) []section {
	orphans, deprecated, omitted := section{Title: "In no inventory"}, section{Title: "API server warnings"}, section{Title: "Not tested"}
	for _, o := range r.Orphans {
		message := "applied by " + o.Owner.String() + ", whose inventory does not contain it, so it is never pruned"
		if o.OwnerDeleted {
			message = "applied by " + o.Owner.String() + ", which was deleted without pruning it"
		}
		orphans.Findings = append(orphans.Findings, finding{Level: "warning", Rule: "orphan", Object: o.Object, Message: message})
	}
	for _, d := range r.Deprecated {
		deprecated.Findings = append(deprecated.Findings, finding{Level: "warning", Rule: "deprecated", Object: d.Object, Message: d.Message, File: d.File})
	}
	for _, o := range r.NotTested {
		omitted.Findings = append(omitted.Findings, finding{Level: "notice", Rule: "not-tested", Object: o.Object, Message: o.Reason})
	}
	disruptive := section{Title: disruptions}
	if r.Timeline != nil {
		for _, e := range r.Timeline.Entries {
			if e.Disruptive() {
				disruptive.Findings = append(disruptive.Findings, finding{Level: "warning", Rule: e.Action, Object: e.Object, Message: e.Action + e.Consequence()})
			}
		}
	}
	return []section{disruptive, orphans, deprecated, omitted}
}
