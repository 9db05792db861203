package cireport

import "github.com/fluxkit/flux/internal/terminal/printable"

// The part of SARIF 2.1.0 that code scanning shows: https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
type (
	// Sarif is a SARIF report.
	Sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []SarifRun `json:"runs"`
	}
	// SarifRun contains the results of a tool.
	SarifRun struct {
		Tool struct {
			Driver struct {
				Name  string      `json:"name"`
				Rules []SarifRule `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []SarifResult `json:"results"`
	}
	// SarifText is a plain-text message.
	SarifText struct {
		Text string `json:"text"`
	}
	// SarifRule describes a rule.
	SarifRule struct {
		ID               string    `json:"id"`
		ShortDescription SarifText `json:"shortDescription"`
		FullDescription  SarifText `json:"fullDescription"`
	}
	// SarifResult is a result of a rule.
	SarifResult struct {
		RuleID string `json:"ruleId"`
		// Level is error, warning or note.
		Level               string            `json:"level"`
		Message             SarifText         `json:"message"`
		Locations           [1]SarifLocation  `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	// SarifLocation is a location in the repository, with the object at this location.
	SarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *SarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
		LogicalLocations [1]SarifLogical `json:"logicalLocations"`
	}
	// SarifRegion is a line.
	SarifRegion struct {
		StartLine int `json:"startLine"`
	}
	// SarifLogical is an object.
	SarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

// NewSarif returns the report of a run.
func NewSarif(rules []SarifRule, results []SarifResult) Sarif {
	run := SarifRun{Results: append([]SarifResult{}, results...)}
	run.Tool.Driver.Name, run.Tool.Driver.Rules = "flux", rules
	return Sarif{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []SarifRun{run}}
}

// NewSarifResult returns a result about an object. Line 0 means unknown. The fingerprint identifies the result in later
// reports.
func NewSarifResult(rule, level, text, object, file string, line int, fingerprint string) SarifResult {
	at := SarifLocation{LogicalLocations: [1]SarifLogical{{object, "object"}}}
	at.PhysicalLocation.ArtifactLocation.URI = file
	if line > 0 {
		at.PhysicalLocation.Region = &SarifRegion{line}
	}
	return SarifResult{rule, level, SarifText{printable.Line(text)}, [1]SarifLocation{at}, map[string]string{"object/v1": fingerprint}}
}
