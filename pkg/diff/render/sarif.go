package render

import (
	"slices"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// The part of SARIF 2.1.0 that code scanning shows: https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
		FullDescription  sarifText `json:"fullDescription"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		Level               string            `json:"level"`
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical  `json:"physicalLocation"`
		LogicalLocations []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

var sarifLevels = map[level]string{failure: "error", warning: "warning", notice: "note"}

// sarif returns the dangers and the failures for code scanning. The location of a result is the
// folder of the Kustomization: the file of an object is not known after kustomize.
func sarif(results []*diff.Result) sarifLog {
	folders := map[place]string{}
	for _, r := range results {
		folders[placeOf(r)] = r.Path
	}
	run := sarifRun{Tool: sarifTool{Driver: sarifDriver{Name: "flux", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	for _, rule := range append(slices.Clone(review.Rules()), otherRules...) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			rule.ID, sarifText{"The object " + rule.Effect + "."}, sarifText{rule.Explanation},
		})
	}
	for _, p := range problems(results) {
		folder := folders[p.place()]
		if folder == "" {
			folder = "."
		}
		fingerprint, text := p.rule+" "+p.object.String(), p.text
		if p.cluster != "" {
			fingerprint, text = p.cluster+" "+fingerprint, text+" (in "+p.cluster+")"
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: p.rule, Level: sarifLevels[p.level], Message: sarifText{printable.Line(text)},
			Locations: []sarifLocation{{
				sarifPhysical{sarifArtifact{folder}}, []sarifLogical{{p.object.String(), "object"}},
			}},
			PartialFingerprints: map[string]string{"object/v1": fingerprint},
		})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}
