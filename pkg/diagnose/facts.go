package diagnose

import (
	"fmt"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Facts describes the applied revision, the revision of the source, and the times of the next
// reconciliations.
type Facts struct {
	// Object is the requested object, or its applier.
	Object controllers.ID
	// Applied is the applied revision. AppliedAt is the time of the last successful reconciliation,
	// or zero if it is unknown.
	Applied   string
	AppliedAt time.Time
	// NextReconciliation is the time of the next reconciliation, or zero if it is unknown.
	Interval           time.Duration
	NextReconciliation time.Time
	// Source is the object that provides the revisions. Fetched is its current revision and
	// FetchedAt the time of that artifact. Address is the address of its server, or "" if the kind
	// has none.
	Source    controllers.ID
	Address   string
	Fetched   string
	FetchedAt time.Time
	// NextFetch is the time of the next fetch. It is zero if the fetch is only known to occur
	// within SourceInterval, and for a suspended source.
	SourceInterval  time.Duration
	NextFetch       time.Time
	SourceSuspended bool
	// Fetch is the command that fetches and applies a new revision immediately.
	Fetch string
}

// factsOf returns the facts of an object, or nil if it has no source.
func (s *judge) factsOf(t controllers.ID) *Facts {
	o, there := s.objects[t]
	k := kindOf(t)
	if !there || len(k.Result) == 0 {
		return nil
	}
	sub := s.subject(k, o)
	link := tree.Link{Kind: k, Live: o}
	f := &Facts{Object: t, Applied: k.Result.String(o), Interval: duration(o, "spec.interval"), AppliedAt: link.Outcome().LastSuccess}
	if len(k.Attempts) == 0 && k.Family != "source" {
		return nil
	}
	source, from := t, o
	if up := k.Upstream(o); len(up) > 0 {
		if k.Source == nil {
			return nil
		}
		source, from = up[0], s.objects[up[0]]
		f.Fetch = sub.again()
		f.NextReconciliation = nextReconciliation(sub, s.Now)
	} else {
		f.Applied, f.AppliedAt, f.Fetch = "", time.Time{}, sub.command("reconcile")
	}
	// A HelmChart is built from a repository, which is the source to fetch.
	for range sourceDepth {
		up := kindOf(source).Upstream(from)
		if len(up) != 1 || from == nil {
			break
		}
		next := s.objects[up[0]]
		if k := kindOf(up[0]); next == nil || k.Static != nil && k.Static(next) {
			break
		}
		source, from = up[0], next
	}
	f.Source = source
	if from != nil {
		f.fetched(s, kindOf(f.Source), from)
	}
	if f.Applied == "" && f.Fetched == "" {
		return nil
	}
	return f
}

// sourceDepth is the maximum length of a chain of sources: chart and
// repository, or artifact, generator and source.
const sourceDepth = 3

// fetched sets the revision of the source and the time of the next fetch.
func (f *Facts) fetched(s *judge, k controllers.Kind, o controllers.Object) {
	f.Fetched, f.SourceInterval = k.Result.String(o), duration(o, "spec.interval")
	f.SourceSuspended = k.Suspension.Is(o)
	f.Address = controllers.Path{k.Fetch.Address}.String(o)
	f.FetchedAt = moment(controllers.Path{"status.artifact.lastUpdateTime"}.String(o))
	if f.SourceSuspended || f.SourceInterval == 0 {
		return
	}
	// A fetch without a new revision is not recorded: only a new artifact or a
	// handled request has a time.
	last := f.FetchedAt
	if requested := moment(controllers.Path{"status.lastHandledReconcileAt"}.String(o)); requested.After(last) {
		last = requested
	}
	if next := last.Add(f.SourceInterval); next.After(s.Now) {
		f.NextFetch = next
	}
}

// nextReconciliation returns the time of the next reconciliation, or zero if it is unknown or
// overdue.
func nextReconciliation(sub subject, now time.Time) time.Time {
	if next := (tree.Link{Kind: sub.kind, Live: sub.object}).Schedule().Next; next.After(now) {
		return next
	}
	return time.Time{}
}

// correction describes when the controller of an applier corrects an object,
// and returns the commands that correct it immediately.
func (d Doctor) correction(sub subject) (detail string, remedies []string) {
	if sub.kind.Drift == nil { // every reconciliation applies all objects
		detail = fmt.Sprintf("%s corrects it with the next reconciliation", sub.kind.Controller)
		if next := nextReconciliation(sub, d.Now); !next.IsZero() {
			detail += ", about " + next.UTC().Format(time.RFC3339)
		} else if interval := duration(sub.object, "spec.interval"); interval > 0 {
			detail += fmt.Sprintf(" (interval %s)", interval)
		}
		return detail, []string{sub.command("reconcile")}
	}
	switch mode := sub.kind.Drift.String(sub.object); mode {
	case "enabled":
		return fmt.Sprintf("%s corrects it with the next reconciliation (interval %s)", sub.kind.Controller, sub.text("spec.interval")), []string{sub.command("reconcile")}
	case "warn":
		detail = fmt.Sprintf("%s: warn reports it in events, and nothing corrects it before the next upgrade", sub.kind.Drift[0])
	default:
		detail = sub.kind.Drift[0] + " is not enabled: nothing corrects it before the next upgrade"
	}
	return detail, []string{sub.command("reconcile", "--force"), fmt.Sprintf("to correct drift automatically, set %s: enabled in %s", sub.kind.Drift[0], sub.id())}
}

// duration returns a field such as spec.interval, or zero if it is missing.
func duration(o controllers.Object, field string) time.Duration {
	d, err := time.ParseDuration(controllers.Path{field}.String(o))
	if err != nil {
		return 0
	}
	return d
}

// moment parses a time. It returns zero if the time is missing.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
