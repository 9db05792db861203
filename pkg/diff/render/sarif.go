package render

import (
	"cmp"
	"slices"

	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

var sarifLevels = map[level]string{failure: "error", warning: "warning", notice: "note"}

// sarif returns the dangers, the failures and the other changes for code scanning. The location of a result is the file of
// the object, or the directory of the Kustomization if the file is not known.
func sarif(results []*diff.Result) cireport.Sarif {
	folders := map[place]string{}
	for _, r := range results {
		folders[placeOf(r)] = r.Path
	}
	var rules []cireport.SarifRule
	for _, rule := range append(slices.Clone(review.Rules()), otherRules...) {
		rules = append(rules, cireport.SarifRule{
			ID: rule.ID, ShortDescription: cireport.SarifText{Text: "The object " + rule.Effect + "."}, FullDescription: cireport.SarifText{Text: rule.Explanation},
		})
	}
	var found []cireport.SarifResult
	for _, p := range append(problems(results), others(results)...) {
		fingerprint, text := p.rule+" "+p.object.String(), p.text
		if p.cluster != "" {
			fingerprint, text = p.cluster+" "+fingerprint, text+" (in "+p.cluster+")"
		}
		found = append(found, cireport.NewSarifResult(p.rule, sarifLevels[p.level], text, p.object.String(), cmp.Or(p.file, folders[p.place()], "."), p.line, fingerprint))
	}
	return cireport.NewSarif(rules, found)
}

// others returns a notice for each change without a problem.
func others(results []*diff.Result) []problem {
	var found []problem
	for r, c := range diff.Each(results) {
		if c.Different() && len(problemsOf(r, *c)) == 0 {
			of := problem{object: c.Object, owner: r.Owner, cluster: r.Cluster, file: c.File, line: c.Line}
			found = append(found, of.is(notice, changes, "is "+verdict(*c)))
		}
	}
	return found
}
