package tree

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Run is an entry of the history that the controllers keep of an object: how
// what it says was last applied, or a release of it.
type Run struct {
	// At is when it last ended, Took how long that was; zero where it is not told.
	At   time.Time
	Took time.Duration
	// Good says that it went well, and Status how it went in the controller's word.
	Good   bool
	Status string
}

// Runs returns the history of a link, the newest first. Kustomizations have an
// entry for each content, HelmReleases one for each release.
func (l Link) Runs() []Run {
	list, _ := controllers.Path{"status.history"}.Lookup(l.Live)
	entries, _ := list.([]any)
	var runs []Run
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		field := func(name string) string { return controllers.Path{name}.String(m) }
		if status := field("lastReconciledStatus"); status != "" {
			took, err := time.ParseDuration(field("lastReconciledDuration"))
			if err != nil {
				took = 0 // older controllers did not write it
			}
			runs = append(runs, Run{moment(field("lastReconciled")), took, status == "ReconciliationSucceeded", status})
			continue
		}
		status := field("status")
		runs = append(runs, Run{At: moment(field("lastDeployed")), Good: status == "deployed" || status == "superseded", Status: status})
	}
	return runs
}

// Above returns where the content of a link comes from, the nearest first: the
// HelmChart before its repository. read fetches an object; that it cannot be
// read is part of the answer.
func Above(from Link, read func(controllers.Target) Link) []Link {
	var chain []Link
	next := from.Kind.Upstream(from.Live)
	for len(next) > 0 && len(chain) < deepest {
		link := read(next[0])
		chain, next = append(chain, link), next[1:]
		switch {
		case link.Live != nil:
			next = append(next, link.Kind.Upstream(link.Live)...)
		case link.Kind.Kind == "HelmChart":
			// The release names the repository of the chart as well.
			next = append(next, from.Kind.SourceOf(from.Live)...)
		}
	}
	return chain
}
