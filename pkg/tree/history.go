package tree

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// HistoryEntry is an entry of the history in the status of a Kustomization or
// HelmRelease.
type HistoryEntry struct {
	// At is the end of the run and Took its duration, zero if unknown.
	At   time.Time
	Took time.Duration
	// Succeeded reports success, and Status is the status as recorded by the
	// controller.
	Succeeded bool
	Status    string
}

// History returns the history of a link, newest first. Kustomizations have an
// entry for each digest, HelmReleases one for each release.
func (l Link) History() []HistoryEntry {
	list, _ := controllers.Path{"status.history"}.Lookup(l.Live)
	entries, _ := list.([]any)
	var runs []HistoryEntry
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		if status := field("lastReconciledStatus"); status != "" {
			took, err := time.ParseDuration(field("lastReconciledDuration"))
			if err != nil {
				took = 0 // older controllers do not record it
			}
			runs = append(runs, HistoryEntry{moment(field("lastReconciled")), took, status == "ReconciliationSucceeded", status})
			continue
		}
		status := field("status")
		runs = append(runs, HistoryEntry{At: moment(field("lastDeployed")), Succeeded: status == "deployed" || status == "superseded", Status: status})
	}
	return runs
}

// SourceChain returns the sources of a link, nearest first: the HelmChart before its
// repository. read reads an object; the link contains the error if it cannot be
// read.
func SourceChain(from Link, read func(controllers.ID) Link) []Link {
	var chain []Link
	next := from.Kind.Upstream(from.Live)
	for len(next) > 0 && len(chain) < deepest {
		link := read(next[0])
		chain, next = append(chain, link), next[1:]
		switch {
		case link.Live != nil:
			next = append(next, link.Kind.Upstream(link.Live)...)
		case link.Kind.Kind == controllers.ChartKind:
			// The release also refers to the repository of the chart.
			next = append(next, from.Kind.SourceOf(from.Live)...)
		}
	}
	return chain
}
