package render

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/diff"
)

// Section holds the changes that exactly the same clusters have in common.
type Section struct {
	// Clusters lists the directories of the clusters. It is empty if only one cluster was compared.
	Clusters []string
	Results  []*diff.Result
}

// Sections groups the changes of several clusters: changes that are displayed in the same way and
// have the same masked values share a section. Sections of more clusters come first.
func Sections(results []*diff.Result) []Section {
	if len(clustersOf(results)) == 0 {
		return []Section{{Results: results}}
	}
	var folded []*part
	known := map[string]*part{}
	for _, r := range results {
		inCluster := map[string]int{}
		for _, p := range partsOf(r) {
			key := p.key()
			inCluster[key]++
			key += fmt.Sprint(inCluster[key]) // a cluster may have the same change twice
			if known[key] == nil {
				known[key] = p
				folded = append(folded, p)
			}
			known[key].clusters = append(known[key].clusters, r.Cluster)
		}
	}
	return sectionsOf(folded)
}

// part is a change, or the rest of a result.
type part struct {
	of       *diff.Result
	change   *diff.Change
	clusters []string
}

// partsOf returns the parts of a result that are displayed.
func partsOf(r *diff.Result) []*part {
	var parts []*part
	if len(r.Warnings) > 0 || len(r.Dangers) > 0 || len(r.Hooks) > 0 || r.NotCompared != nil {
		parts = append(parts, &part{of: r})
	}
	for i := range r.Changes {
		if c := &r.Changes[i]; c.Action != diff.Unchanged || len(c.Notes) > 0 {
			parts = append(parts, &part{of: r, change: c})
		}
	}
	return parts
}

// key is the same for parts that are displayed in the same way.
func (p *part) key() string {
	var content any = []any{p.of.Warnings, p.of.Dangers, p.of.Hooks, p.of.NotCompared, p.of.Step}
	if p.change != nil {
		content = []any{p.change, unified(*p.change, p.of.Builds), p.change.Digest, p.of.Drift}
	}
	text, err := json.Marshal([]any{p.of.Owner, p.change == nil, content})
	if err != nil { // cannot fail for values decoded from JSON
		text = fmt.Append(nil, p.of.Cluster, content)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// sectionsOf returns the sections of parts.
func sectionsOf(parts []*part) []Section {
	var all []Section
	at := map[string]int{}
	shown := map[string]*diff.Result{}
	for _, p := range parts {
		name := fmt.Sprintf("%q", p.clusters)
		i, ok := at[name]
		if !ok {
			i = len(all)
			at[name] = i
			all = append(all, Section{Clusters: p.clusters})
		}
		name += p.of.Owner.String()
		r := shown[name]
		if r == nil {
			r = bare(p.of)
			shown[name] = r
			all[i].Results = append(all[i].Results, r)
		}
		if p.change != nil {
			r.Changes = append(r.Changes, *p.change)
			continue
		}
		r.Warnings, r.Dangers, r.Hooks, r.NotCompared = p.of.Warnings, p.of.Dangers, p.of.Hooks, p.of.NotCompared
	}
	slices.SortStableFunc(all, func(a, b Section) int { return len(b.Clusters) - len(a.Clusters) })
	return all
}

// bare returns a copy of a result without its parts.
func bare(r *diff.Result) *diff.Result {
	c := *r
	c.Cluster, c.Changes, c.Warnings, c.Dangers, c.Hooks, c.NotCompared = "", nil, nil, nil, nil, nil
	return &c
}

// clustersOf returns the clusters of results, in their order.
func clustersOf(results []*diff.Result) []string {
	var all []string
	for _, r := range results {
		if r.Cluster != "" && !slices.Contains(all, r.Cluster) {
			all = append(all, r.Cluster)
		}
	}
	return all
}

// Changes returns the changes of the section, each with its result.
func (s Section) Changes() iter.Seq2[*diff.Result, *diff.Change] { return diff.Each(s.Results) }

// Title returns the heading of the section, or "" if one cluster was compared.
func (s Section) Title() string {
	switch len(s.Clusters) {
	case 0:
		return ""
	case 1:
		return "Cluster " + printable.Line(s.Clusters[0])
	}
	return fmt.Sprintf("The same in %d clusters: %s", len(s.Clusters), s.names())
}

// In returns the clusters of the section as the end of a sentence, or "" if one cluster was compared.
func (s Section) In() string {
	if len(s.Clusters) == 0 {
		return ""
	}
	return " (in " + s.names() + ")"
}

func (s Section) names() string { return strings.Join(printable.Lines(s.Clusters), ", ") }

// Unchanged returns the clusters without changes in which everything was compared.
func Unchanged(results []*diff.Result) []string {
	return without(results, func(r *diff.Result) bool { return r.Different() || r.NotCompared != nil })
}

// without returns the clusters that have no result with a property.
func without(results []*diff.Result, property func(*diff.Result) bool) []string {
	has := map[string]bool{}
	for _, r := range results {
		has[r.Cluster] = has[r.Cluster] || property(r)
	}
	return slices.DeleteFunc(clustersOf(results), func(cluster string) bool { return has[cluster] })
}

// different returns the clusters with changes.
func different(results []*diff.Result) []string {
	same := without(results, (*diff.Result).Different)
	return slices.DeleteFunc(clustersOf(results), func(cluster string) bool { return slices.Contains(same, cluster) })
}
