package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// Annotations returns an annotation of GitHub Actions for each danger and for each failure. GitHub
// shows them in the summary of the run.
func Annotations(results []*diff.Result) string {
	var b strings.Builder
	for _, section := range Sections(results) {
		for _, p := range problems(section.Results) {
			b.WriteString(cireport.Annotation{Level: annotationLevels[p.level], Title: p.rule, File: p.file, Line: p.line, Text: p.text + section.In()}.String())
		}
	}
	return b.String()
}

var annotationLevels = map[level]string{failure: "error", warning: "warning", notice: "notice"}

// level is the severity of a problem.
type level int

const (
	failure level = iota
	warning
	notice
)

// problem is a danger, an object that cannot be applied, or an owner that was not compared.
type problem struct {
	level level
	// rule is the ID of the rule, or one of the IDs in otherRules.
	rule string
	// object is the object, and owner the Kustomization or HelmRelease that applies it.
	object, owner controllers.VersionedID
	// cluster is the directory of the cluster, if several were compared.
	cluster string
	// text is a sentence that contains the object.
	text string
	// file and line are as in diff.Change.
	file string
	line int
}

// place identifies the owner of a problem.
type place struct {
	cluster string
	owner   controllers.VersionedID
}

func placeOf(r *diff.Result) place { return place{r.Cluster, r.Owner} }

func (p problem) place() place { return place{p.cluster, p.owner} }

// The IDs of problems without a rule of package review.
const (
	cannotApply = "cannot-be-applied"
	notCompared = "not-compared"
	noImage     = "missing-image"
	unknown     = "unverified-image"
	changes     = "change"
)

var otherRules = []review.Rule{
	{ID: cannotApply, Effect: "cannot be applied", Explanation: "The API server rejects the object, so the reconciliation fails."},
	{ID: notCompared, Effect: "is not compared", Explanation: "The comparison cannot read the content of the source, so its changes are unknown."},
	{ID: noImage, Effect: "uses an image that does not exist in its registry", Explanation: "The containers cannot start. With --verify-platforms, the image may exist for other platforms."},
	{ID: unknown, Effect: "uses an image that could not be verified", Explanation: "The registry is unreachable or rejected the request, so the image may not exist."},
	{ID: changes, Effect: "changes", Explanation: "The pull request changes the object on the cluster."},
}

// problems returns the problems of all results: failures, warnings and notices, each in the order of the rules. Dangers
// that are allowed, and deletions as such, are not problems.
func problems(results []*diff.Result) []problem {
	var found []problem
	for _, r := range results {
		of := problem{object: r.Owner, owner: r.Owner, cluster: r.Cluster, file: r.File, line: r.Line}
		found = append(found, of.dangers(r.Dangers)...)
		if r.NotCompared != nil {
			found = append(found, of.is(notice, notCompared, "is not compared: "+r.NotCompared.Reason))
		}
		for _, c := range r.Changes {
			found = append(found, problemsOf(r, c)...)
		}
	}
	slices.SortStableFunc(found, compareProblems)
	return found
}

// problemsOf returns the problems of a change.
func problemsOf(r *diff.Result, c diff.Change) []problem {
	of := problem{object: c.Object, owner: r.Owner, cluster: r.Cluster, file: c.File, line: c.Line}
	var found []problem
	if c.Action == diff.Failed {
		found = append(found, of.is(failure, cannotApply, "cannot be applied: "+c.Reason))
	}
	found = append(found, of.dangers(c.Dangers)...)
	for _, i := range c.Images {
		switch rule, text := imageProblem(i); rule {
		case noImage:
			found = append(found, of.is(failure, rule, text))
		case unknown:
			found = append(found, of.is(warning, rule, text))
		}
	}
	return found
}

// compareProblems orders problems by level and by the order of the rules.
func compareProblems(a, b problem) int {
	return cmp.Or(cmp.Compare(a.level, b.level), review.Position(a.rule)-review.Position(b.rule))
}

// is returns a problem with the object of p. text continues a sentence that starts with the name of the object.
func (p problem) is(l level, rule, text string) problem {
	p.level, p.rule, p.text = l, rule, p.object.String()+" "+text
	return p
}

// dangers returns the dangers of the object of p that are problems.
func (p problem) dangers(of []diff.Danger) []problem {
	var found []problem
	for _, d := range of {
		switch {
		case d.Allowed != "":
		case !d.Notice:
			found = append(found, p.is(warning, d.Rule, review.Effect(d)))
		case d.Rule != "prune":
			found = append(found, p.is(notice, d.Rule, review.Effect(d)))
		}
	}
	return found
}
