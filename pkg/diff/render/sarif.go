package render

import (
	"cmp"
	"slices"

	"github.com/fluxkit/flux/internal/ci/cireport"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

var sarifLevels = map[level]string{failure: "error", warning: "warning", notice: "note"}

// sarif returns the dangers and the failures for code scanning. The location of a result is the
// folder of the Kustomization: the file of an object is not known after kustomize.
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
	for _, p := range problems(results) {
		fingerprint, text := p.rule+" "+p.object.String(), p.text
		if p.cluster != "" {
			fingerprint, text = p.cluster+" "+fingerprint, text+" (in "+p.cluster+")"
		}
		found = append(found, cireport.NewSarifResult(p.rule, sarifLevels[p.level], text, p.object.String(), cmp.Or(folders[p.place()], "."), 0, fingerprint))
	}
	return cireport.NewSarif(rules, found)
}
