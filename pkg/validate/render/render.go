// Package render writes the results of a validation for people and CI systems.
package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// Human is the format for terminals.
const Human = "human"

const (
	github = "github"
	sarif  = "sarif"
	junit  = "junit"
)

// Formats lists the output formats; json and yaml print an Answer.
func Formats() []string { return []string{Human, "json", "yaml", github, sarif, junit} }

// Answer is the result in JSON and YAML.
type Answer struct {
	Kubernetes string             `json:"kubernetes"`
	Valid      bool               `json:"valid"`
	Clusters   []*validate.Result `json:"clusters"`
}

// AnswerOf returns the answer for the results of clusters.
func AnswerOf(kubernetes string, results []*validate.Result) Answer {
	return Answer{kubernetes, !slices.ContainsFunc(results, func(r *validate.Result) bool {
		return r.Count(validate.Invalid) > 0 || r.Count(validate.Unknown) > 0
	}), results}
}

// Report configures a report.
type Report struct {
	// Unknown is the heading for objects that could not be checked, and Checked the verb for checked objects.
	Unknown, Checked string
	// Failed lists the severities that fail a JUnit test.
	Failed []validate.Severity
	// Describe returns the description of a rule, and its reason.
	Describe func(rule string) (summary, reason string)
	// Rules is set to print the rule ID of findings.
	Rules bool
	// Width is the number of columns at which the text is wrapped, or 0.
	Width int
}

// Validation returns the report of a validation.
func Validation() Report {
	return Report{
		Unknown: "Not validated", Checked: "validated", Failed: []validate.Severity{validate.Invalid},
		Describe: func(rule string) (summary, reason string) { return descriptions[rule], descriptions[rule] },
	}
}

// Write writes the results in a format other than JSON and YAML.
func Write(w io.Writer, format string, about Report, results []*validate.Result) error {
	switch format {
	case github:
		_, err := io.WriteString(w, annotations(results))
		return err
	case junit:
		return about.suites(results).Write(w)
	case sarif:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(about.scan(results))
	}
	_, err := io.WriteString(w, about.text(results))
	return err
}

// levels maps severities to annotation levels.
var levels = map[validate.Severity]string{validate.Invalid: "error", validate.Unknown: "warning", validate.Warning: "warning", validate.Note: "notice"}

func annotations(results []*validate.Result) string {
	var b strings.Builder
	for _, r := range results {
		for _, f := range r.Findings {
			text := f.Object.String() + ": " + sentence(f)
			if f.Fix != "" {
				text += " (" + f.Fix + ")"
			}
			if len(results) > 1 {
				text += " in " + r.Path
			}
			b.WriteString(cireport.Annotation{Level: levels[f.Severity], Title: f.Rule, File: f.File, Line: f.Line, Text: text}.String())
		}
	}
	return b.String()
}

// suites returns a test suite for each cluster, with a test for each object with findings and one
// test for all other objects.
func (about Report) suites(results []*validate.Result) *cireport.Suites {
	var all cireport.Suites
	for _, r := range results {
		suite := cireport.Suite{Name: printable.Line(r.Path)}
		var order []controllers.VersionedID
		cases := map[controllers.VersionedID]*cireport.Case{}
		for _, f := range r.Findings {
			c := cases[f.Object]
			if c == nil {
				c = &cireport.Case{Name: printable.Line(f.Object.String()), File: printable.Line(f.File), Line: f.Line}
				cases[f.Object], order = c, append(order, f.Object)
			}
			p := cireport.Problem{Type: f.Rule, Message: printable.Line(sentence(f))}
			if f.Line > 0 {
				p.Place = fmt.Sprintf("%s:%d", printable.Line(f.File), f.Line)
			}
			switch {
			case slices.Contains(about.Failed, f.Severity):
				c.Failures = append(c.Failures, p)
			case f.Severity == validate.Unknown && c.Failures == nil:
				c.Skipped = &p
			}
		}
		for _, ref := range order {
			suite.Add(*cases[ref])
		}
		suite.Add(cireport.Case{Name: fmt.Sprintf("%d of %d objects %s", r.Validated, r.Objects, about.Checked)})
		all.Add(suite)
	}
	return &all
}

// Describe returns the description of a validation rule, or "".
func Describe(rule string) string { return descriptions[rule] }

// descriptions describe the rules.
var descriptions = map[string]string{
	verdict.RuleUnknownField: "The schema does not declare a field.", verdict.RuleSchema: "A value violates the schema.",
	verdict.RuleCEL: "A validation rule of the CustomResourceDefinition fails.", verdict.RuleAPIVersion: "No server serves the API version.",
	verdict.RuleServer: "The API server rejects the object.", validate.RuleBuild: "The manifests cannot be built.",
	validate.RuleReference: "A referenced object is not in Git.", validate.RuleDependency: "A dependency is missing or circular.",
	validate.RuleNamespace: "The namespace is missing.", validate.RuleDeprecated: "The API version is deprecated.",
	validate.RuleVariable: "A variable has no value.", validate.RuleMissingSchema: "A kind has no schema.",
	validate.RuleNotRendered: "An object was not rendered.", validate.RuleNotValidated: "An object was not validated.",
	validate.RuleOwner: "Two Kustomizations apply an object.", validate.RuleDecryption: "An encrypted Secret is not decrypted.",
	validate.RuleDeadlock:   "A custom resource prevents the installation of its CustomResourceDefinition.",
	validate.RuleExpression: "A CEL expression does not compile.", validate.RuleLabel: "A label is not a string.",
	validate.RuleSchemaLocation: "The schema from a schema location cannot be used.",
	validate.RuleKustomization:  "A kustomization.yaml contains an unknown field.",
}

// scan returns the findings for code scanning. A finding without a file is reported for the cluster directory.
func (about Report) scan(results []*validate.Result) cireport.Sarif {
	used := map[string]bool{}
	var found []cireport.SarifResult
	for _, r := range results {
		for _, f := range r.Findings {
			used[f.Rule] = true
			level := levels[f.Severity]
			if f.Severity == validate.Note {
				level = "note"
			}
			object := f.Object.String()
			found = append(found, cireport.NewSarifResult(
				f.Rule, level, object+": "+sentence(f), object, cmp.Or(f.File, r.Path), f.Line, strings.Join([]string{r.Path, f.Rule, object, f.Field}, " ")))
		}
	}
	var rules []cireport.SarifRule
	for _, id := range slices.Sorted(maps.Keys(used)) {
		summary, reason := about.Describe(id)
		rules = append(rules, cireport.SarifRule{ID: id, ShortDescription: cireport.SarifText{Text: summary}, FullDescription: cireport.SarifText{Text: reason}})
	}
	return cireport.NewSarif(rules, found)
}
