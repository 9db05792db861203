package diagnose

import (
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/tree"
)

// Facts describes the applied revision, the revision of the source, and the times of the next reconciliations.
type Facts struct {
	// Object is the requested object, or its applier.
	Object controllers.ID
	// Applied is the applied revision. AppliedAt is the time of the last successful reconciliation, or zero if it is unknown.
	Applied   string
	AppliedAt time.Time
	// NextReconciliation is the time of the next reconciliation, or zero if it is unknown.
	Interval           time.Duration
	NextReconciliation time.Time
	// Source is the object that provides the revisions. Fetched is its current revision, and FetchedAt is the time at which its
	// artifact was last updated. Address is the server address, or "" if the kind has no address.
	Source    controllers.ID
	Address   string
	Fetched   string
	FetchedAt time.Time
	// NextFetch is the time of the next fetch. It is zero for a suspended source, and if the fetch is only known to occur within
	// SourceInterval.
	SourceInterval  time.Duration
	NextFetch       time.Time
	SourceSuspended bool
	// Fetch is the command that fetches and applies a new revision immediately.
	Fetch string
}

// sourceDepth is the maximum length of a chain of sources: chart and repository, or artifact, generator and source.
const sourceDepth = 3

// facts returns the facts of an object, or nil if it has no source.
func (e *evaluation) facts(t controllers.ID) *Facts {
	o, there := e.snapshot.Objects[t]
	k := observe.KindOf(t)
	if !there || len(k.Result) == 0 || len(k.Attempts) == 0 && k.Family != "source" {
		return nil
	}
	s, link := e.subject(t), tree.Link{Kind: k, Live: o}
	schedule := link.Schedule()
	f := &Facts{Object: t, Interval: schedule.Interval, Fetch: s.Command("reconcile")}
	source, from := t, o
	if up := k.Upstream(o); len(up) > 0 {
		if k.Source == nil {
			return nil
		}
		source, from = up[0], e.snapshot.Objects[up[0]]
		f.Applied, f.AppliedAt, f.Fetch = k.Result.String(o), link.Outcome().LastSuccess, s.Again()
		if schedule.Next.After(e.now) {
			f.NextReconciliation = schedule.Next
		}
	}
	// A HelmChart is built from a repository, which is the source to fetch.
	for range sourceDepth {
		up := observe.KindOf(source).Upstream(from)
		if len(up) != 1 || from == nil {
			break
		}
		next := e.snapshot.Objects[up[0]]
		if k := observe.KindOf(up[0]); next == nil || k.Static != nil && k.Static(next) {
			break
		}
		source, from = up[0], next
	}
	f.Source = source
	if from != nil {
		f.setFetched(observe.KindOf(source), from, e.now)
	}
	if f.Applied == "" && f.Fetched == "" {
		return nil
	}
	return f
}

// setFetched sets the revision of the source and the time of the next fetch.
func (f *Facts) setFetched(k controllers.Kind, o controllers.Object, now time.Time) {
	moment := func(field string) time.Time { return rules.Moment(controllers.Path{field}.String(o)) }
	f.Fetched, f.SourceInterval = k.Result.String(o), tree.Link{Kind: k, Live: o}.Schedule().Interval
	f.SourceSuspended = k.Suspension.Is(o)
	f.Address = controllers.Path{k.Fetch.Address}.String(o)
	f.FetchedAt = moment("status.artifact.lastUpdateTime")
	if f.SourceSuspended || f.SourceInterval == 0 {
		return
	}
	// A fetch without a new revision is not recorded: only a new artifact or a handled request has a time.
	last := f.FetchedAt
	if requested := moment("status.lastHandledReconcileAt"); requested.After(last) {
		last = requested
	}
	if next := last.Add(f.SourceInterval); next.After(now) {
		f.NextFetch = next
	}
}
