package render

import (
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
			b.WriteString(cireport.Annotation{Level: annotationLevels[p.level], Title: p.rule, Text: p.text + section.In()}.String())
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
	// text is a sentence with the object.
	text string
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
)

var otherRules = []review.Rule{
	{ID: cannotApply, Effect: "cannot be applied", Explanation: "The API server rejects the object, so the reconciliation fails."},
	{ID: notCompared, Effect: "is not compared", Explanation: "The content of the source is not known to the comparison, so its changes are not known either."},
	{ID: noImage, Effect: "uses an image that its registry does not have", Explanation: "The containers cannot start. With --verify-platforms, the image may exist for other platforms."},
	{ID: unknown, Effect: "uses an image that could not be verified", Explanation: "The registry could not be asked, or refuses to answer, so the image may be missing."},
}

// problems returns the problems of all results: failures, warnings and notices. Dangers that are
// allowed, and deletions as such, are not problems.
func problems(results []*diff.Result) []problem {
	var found [3][]problem
	add := func(l level, rule string, object controllers.VersionedID, r *diff.Result, text string) {
		found[l] = append(found[l], problem{l, rule, object, r.Owner, r.Cluster, object.String() + " " + text})
	}
	dangers := func(of []diff.Danger, object controllers.VersionedID, r *diff.Result) {
		for _, d := range of {
			switch {
			case d.Allowed != "":
			case !d.Notice:
				add(warning, d.Rule, object, r, review.Effect(d))
			case d.Rule != "prune":
				add(notice, d.Rule, object, r, review.Effect(d))
			}
		}
	}
	for _, r := range results {
		dangers(r.Dangers, r.Owner, r)
		if r.NotCompared != nil {
			add(notice, notCompared, r.Owner, r, "is not compared: "+r.NotCompared.Reason)
		}
		for _, c := range r.Changes {
			if c.Action == diff.Failed {
				add(failure, cannotApply, c.Object, r, "cannot be applied: "+c.Reason)
			}
			dangers(c.Dangers, c.Object, r)
			for _, i := range c.Images {
				switch rule, text := imageProblem(i); rule {
				case noImage:
					add(failure, rule, c.Object, r, text)
				case unknown:
					add(warning, rule, c.Object, r, text)
				}
			}
		}
	}
	return append(append(found[failure], found[warning]...), found[notice]...)
}
