package render

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// Summary counts the objects for each action.
type Summary struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Recreated int `json:"recreated"`
	Pruned    int `json:"pruned"`
	Encrypted int `json:"encrypted"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	// NotCorrected counts the skipped objects that differ from what was applied.
	NotCorrected int `json:"notCorrected"`
	Unchanged    int `json:"unchanged"`
	// Blocked counts the Kustomizations and HelmReleases that are no longer reconciled.
	Blocked int `json:"blocked,omitempty"`
	// Unstable counts the objects that differ only in values that differ on every rendering.
	Unstable int `json:"unstable,omitempty"`
	// Ignored counts the objects that differ only in ignored fields. IgnoredFields counts the
	// ignored fields of all objects.
	Ignored       int `json:"ignored,omitempty"`
	IgnoredFields int `json:"ignoredFields,omitempty"`
	// NotCompared counts the Kustomizations and HelmReleases that could not be compared.
	NotCompared int `json:"notCompared"`
	// Affected counts those in NotCompared that the change may affect.
	Affected int `json:"affected,omitempty"`
	// Dangers lists the IDs of the dangers of all changes, without duplicates.
	Dangers []string `json:"dangers"`
}

// Sum returns the summary of several results.
func Sum(results []*diff.Result) Summary {
	s := Summary{Dangers: []string{}}
	for _, r := range results {
		s.Created += r.Count(diff.Created)
		s.Changed += r.Count(diff.Changed)
		s.Recreated += r.Count(diff.Recreated)
		s.Pruned += r.Count(diff.Pruned)
		s.Encrypted += r.Count(diff.Encrypted)
		s.Failed += r.Count(diff.Failed)
		s.Skipped += r.Count(diff.Skipped)
		s.Unchanged += r.Count(diff.Unchanged)
		s.Blocked += r.Count(diff.Blocked)
		s.Unstable += r.Count(diff.Unstable)
		s.Ignored += r.Count(diff.Ignored)
		if r.NotCompared != nil {
			s.NotCompared++
			if r.NotCompared.Affected {
				s.Affected++
			}
		}
		s.addDangers(r.Dangers)
		for _, c := range r.Changes {
			s.addDangers(c.Dangers)
			s.IgnoredFields += c.IgnoredFields
			if c.Left() {
				s.NotCorrected++
			}
		}
	}
	slices.Sort(s.Dangers)
	s.Dangers = slices.Compact(s.Dangers)
	return s
}

func (s *Summary) addDangers(dangers []diff.Danger) {
	for _, d := range dangers {
		s.Dangers = append(s.Dangers, d.Rule)
	}
}

// ClusterSummary is the summary of one of several clusters.
type ClusterSummary struct {
	Cluster   string `json:"cluster"`
	Different bool   `json:"different"`
	Summary
}

// byCluster returns the summaries of the clusters.
func byCluster(results []*diff.Result) []ClusterSummary {
	var all []ClusterSummary
	for _, cluster := range clustersOf(results) {
		of := slices.DeleteFunc(slices.Clone(results), func(r *diff.Result) bool { return r.Cluster != cluster })
		all = append(all, ClusterSummary{cluster, slices.ContainsFunc(of, (*diff.Result).Different), Sum(of)})
	}
	return all
}

// report returns a summary and all objects except the unchanged ones, for JSON.
func report(results []*diff.Result) any {
	r := struct {
		Different bool    `json:"different"`
		Summary   Summary `json:"summary"`
		// Clusters lists the summaries of the clusters, if several were compared.
		Clusters       []ClusterSummary `json:"clusters,omitempty"`
		Kustomizations []*diff.Result   `json:"kustomizations"`
	}{slices.ContainsFunc(results, (*diff.Result).Different), Sum(results), byCluster(results), []*diff.Result{}}
	for _, result := range results {
		shown := *result
		shown.Changes = slices.DeleteFunc(slices.Clone(result.Changes), func(c diff.Change) bool { return c.Action == diff.Unchanged && len(c.Notes) == 0 })
		r.Kustomizations = append(r.Kustomizations, &shown)
	}
	return r
}

// encode returns a value in JSON.
func encode(v any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.String(), err
}
