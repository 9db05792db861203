package render

import (
	"cmp"
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
		Tool struct {
			Driver struct {
				Name  string      `json:"name"`
				Rules []sarifRule `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
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
		Locations           [1]sarifLocation  `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
		} `json:"physicalLocation"`
		LogicalLocations [1]sarifLogical `json:"logicalLocations"`
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
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver.Name = "flux"
	for _, rule := range append(slices.Clone(review.Rules()), otherRules...) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			rule.ID, sarifText{"The object " + rule.Effect + "."}, sarifText{rule.Explanation},
		})
	}
	for _, p := range problems(results) {
		at := sarifLocation{LogicalLocations: [1]sarifLogical{{p.object.String(), "object"}}}
		at.PhysicalLocation.ArtifactLocation.URI = cmp.Or(folders[p.place()], ".")
		fingerprint, text := p.rule+" "+p.object.String(), p.text
		if p.cluster != "" {
			fingerprint, text = p.cluster+" "+fingerprint, text+" (in "+p.cluster+")"
		}
		run.Results = append(run.Results, sarifResult{
			p.rule, sarifLevels[p.level], sarifText{printable.Line(text)}, [1]sarifLocation{at}, map[string]string{"object/v1": fingerprint},
		})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}
