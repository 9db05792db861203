package tree

import (
	"strconv"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// HistoryEntry is an entry of the history in the status of an object.
type HistoryEntry struct {
	// At is the end of the run, and Took its duration, zero if unknown. For a Helm release, At is the time of the deployment.
	At   time.Time
	Took time.Duration
	// Succeeded reports success, and Status is the status recorded by the controller.
	Succeeded bool
	Status    string
	// Revision is the revision of the source, or the version of the chart, and Origin the revision from which an OCI artifact was
	// built. They are "" if the controller does not record them.
	Revision, Origin string
	// Digest is the digest of the applied objects, or of the release.
	Digest string
	// First is the time of the first run with this digest and status, and Runs the number of such runs, 0 for a release.
	First time.Time
	Runs  int
	// Release, Chart, AppVersion and Action describe a Helm release: its version, chart, and the action that created it.
	Release, Chart, AppVersion, Action string
	// Artifact is the digest of the OCI artifact of a chart, and Config that of the values of a release.
	Artifact, Config string
}

// Started returns the start time of the run.
func (h HistoryEntry) Started() time.Time { return h.At.Add(-h.Took) }

// History returns the history of a link, newest first. Kustomizations have an
// entry for each digest, HelmReleases one for each release.
func (l Link) History() []HistoryEntry {
	list, _ := controllers.Path{"status.history"}.Lookup(l.Live)
	entries, _ := list.([]any)
	var runs []HistoryEntry
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		field := func(names ...string) string { return controllers.Path(names).String(m) }
		if status := field("lastReconciledStatus"); status != "" {
			took, err := time.ParseDuration(field("lastReconciledDuration"))
			if err != nil {
				took = 0 // older controllers do not record it
			}
			total, _ := strconv.Atoi(field("totalReconciliations")) // an integer in the schema of the CRD
			runs = append(runs, HistoryEntry{
				At: moment(field("lastReconciled")), Took: took, Succeeded: status == "ReconciliationSucceeded", Status: status,
				Revision: field("metadata.revision", "metadata.flux"), Origin: field("metadata.originRevision"),
				Digest: field("digest"), First: moment(field("firstReconciled")), Runs: total,
			})
			continue
		}
		status := field("status")
		runs = append(runs, HistoryEntry{
			At: moment(field("lastDeployed")), Succeeded: status == "deployed" || status == "superseded", Status: status,
			Revision: field("chartVersion"), Digest: field("digest"), First: moment(field("firstDeployed")),
			Release: field("version"), Chart: field("chartName"), AppVersion: field("appVersion"), Action: field("action"),
			Artifact: field("ociDigest"), Config: field("configDigest"),
		})
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
