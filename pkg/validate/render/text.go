package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/terminal/fit"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
)

// heading is the heading of a severity.
type heading struct {
	severity validate.Severity
	text     string
}

// headings returns the headings in the order of the severities.
func (about Report) headings() []heading {
	return []heading{{validate.Invalid, "Errors"}, {validate.Unknown, about.Unknown}, {validate.Warning, "Warnings"}, {validate.Note, "Notes"}}
}

// text returns the findings by cluster, severity and object.
func (about Report) text(results []*validate.Result) string {
	var b strings.Builder
	for _, r := range results {
		for _, h := range about.headings() {
			if r.Count(h.severity) == 0 {
				continue
			}
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(h.text)
			if len(results) > 1 {
				b.WriteString(" in " + printable.Line(r.Path))
			}
			b.WriteString(":\n")
			about.writeFindings(&b, r, h.severity)
		}
	}
	return b.String()
}

// often is the minimum number of objects with the same finding for which the finding is written only once, with the places of
// the objects.
const often = 5

// common is a finding that several objects of a kind share.
type common struct{ kind, rule, sentence, fix string }

func commonOf(f validate.Finding) common { return common{f.Object.Kind, f.Rule, sentence(f), f.Fix} }

// writeFindings writes the findings of a severity, grouped by object. Objects from the same file with the same findings are
// written once, because several directories may include a component.
func (about Report) writeFindings(b *strings.Builder, r *validate.Result, severity validate.Severity) {
	about.writeKinds(b, r, severity)
	var findings []validate.Finding
	shared := map[common][]validate.Finding{}
	for _, f := range r.Findings {
		if f.Severity == severity && f.Rule != validate.RuleMissingSchema {
			findings = append(findings, f)
			if f.File != "" {
				shared[commonOf(f)] = append(shared[commonOf(f)], f)
			}
		}
	}
	isShared := func(f validate.Finding) bool { return f.File != "" && len(shared[commonOf(f)]) >= often }
	about.writeObjects(b, slices.DeleteFunc(slices.Clone(findings), isShared))
	written := map[common]bool{}
	for _, f := range findings {
		if key := commonOf(f); isShared(f) && !written[key] {
			written[key] = true
			about.writeShared(b, shared[key])
		}
	}
}

// writeObjects writes findings by object.
func (about Report) writeObjects(b *strings.Builder, findings []validate.Finding) {
	type place struct {
		object controllers.VersionedID
		file   string
	}
	type block struct{ kind, at, findings string }
	written := map[place]bool{}
	objects := map[block][]string{}
	var order []block
	for i, f := range findings {
		at := place{f.Object, f.File}
		if written[at] {
			continue
		}
		written[at] = true
		is := block{f.Object.String(), "", ""}
		switch {
		case f.File != "":
			is.kind, is.at = f.Object.Kind, " in "+printable.Line(f.File)
		case f.Owner != f.Object:
			is.at = " of " + printable.Line(f.Owner.String())
		}
		for _, other := range findings[i:] {
			if at == (place{other.Object, other.File}) {
				is.findings += about.finding(other, lineOf(other), "    ")
			}
		}
		if objects[is] == nil {
			order = append(order, is)
		}
		objects[is] = append(objects[is], printable.Line(f.Object.String()))
	}
	for _, is := range order {
		b.WriteString("  " + andMore(objects[is]) + is.at + "\n" + is.findings)
	}
}

// writeShared writes a finding that many objects of a kind share, with the places of the objects.
func (about Report) writeShared(b *strings.Builder, findings []validate.Finding) {
	fmt.Fprintf(b, "  %s of kind %s\n", output.Amount(len(findings), "object"), printable.Line(findings[0].Object.Kind))
	b.WriteString(about.finding(findings[0], "", "    "))
	objects := map[string][]string{}
	var order []string
	for _, f := range findings {
		place := f.File
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		if objects[place] == nil {
			order = append(order, place)
		}
		objects[place] = append(objects[place], printable.Line(strings.TrimPrefix(f.Object.String(), f.Object.Kind+"/")))
	}
	for _, place := range order {
		b.WriteString("      " + printable.Line(place) + " " + andMore(objects[place]) + "\n")
	}
}

// andMore returns the first names, and the number of remaining names.
func andMore(names []string) string { return budget.List(names, 1) }

// finding returns the text of a finding and its fix.
func (about Report) finding(f validate.Finding, line, indent string) string {
	text := fit.Fold(indent+line+printable.Line(sentence(f))+about.suffix(f), len(indent)+2, about.Width) + "\n"
	if f.Fix != "" {
		text += fit.Fold(indent+"  "+printable.Line(f.Fix), len(indent)+4, about.Width) + "\n"
	}
	return text
}

func lineOf(f validate.Finding) string {
	if f.Line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", f.Line)
}

// writeKinds writes the kinds without a schema instead of their objects, which may be many.
func (about Report) writeKinds(b *strings.Builder, r *validate.Result, severity validate.Severity) {
	counts := map[string]map[string]int{}
	for _, f := range r.Findings {
		if f.Severity == severity && f.Rule == validate.RuleMissingSchema {
			if counts[f.Message] == nil {
				counts[f.Message] = map[string]int{}
			}
			kind := f.Object.GroupVersionKind()
			counts[f.Message][kind.Kind+" in "+kind.GroupVersion().String()]++
		}
	}
	for _, message := range slices.Sorted(maps.Keys(counts)) {
		b.WriteString(fit.Fold("  "+printable.Line(message), 4, about.Width) + "\n")
		kinds := counts[message]
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			b.WriteString(fit.Fold(fmt.Sprintf("    %s: %s", printable.Line(kind), output.Amount(kinds[kind], "object")), 6, about.Width) + "\n")
		}
	}
}

// suffix returns the rule ID of a finding, if the report includes rule IDs.
func (about Report) suffix(f validate.Finding) string {
	if !about.Rules {
		return ""
	}
	return " [" + f.Rule + "]"
}

// sentence returns the field and the message of a finding.
func sentence(f validate.Finding) string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}
