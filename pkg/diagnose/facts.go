package diagnose

import (
	"fmt"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Facts are the revisions behind an object: which one is live, which one the
// source has fetched, and when either is looked at again.
type Facts struct {
	// Object applies what was asked about, or is it.
	Object controllers.Target
	// Applied is the revision that is live, AppliedAt when it was last
	// reconciled successfully; zero where that is not known.
	Applied   string
	AppliedAt time.Time
	// NextReconciliation is when that is due again, zero where it is not known.
	Interval           time.Duration
	NextReconciliation time.Time
	// Source is where the revisions come from, Fetched the one that it has and
	// FetchedAt when it was stored. Address is that of its server, "" where the
	// kind has none.
	Source    controllers.Target
	Address   string
	Fetched   string
	FetchedAt time.Time
	// NextFetch is when the source looks for a newer one, zero where that is only
	// known to be within SourceInterval. A suspended source does not look at all.
	SourceInterval  time.Duration
	NextFetch       time.Time
	SourceSuspended bool
	// Fetch is the command that fetches and applies a new revision now.
	Fetch string
}

// factsOf returns the revisions behind an object, nil where it has no source.
func (s *snapshot) factsOf(t controllers.Target) *Facts {
	o, there := s.objects[t]
	k := s.kindOf(t)
	if !there || len(k.Result) == 0 {
		return nil
	}
	sub := s.subject(k, o)
	link := tree.Link{Kind: k, Live: o}
	f := &Facts{Object: t, Applied: k.Result.String(o), Interval: duration(o, "spec.interval"), AppliedAt: link.Outcome().Good}
	if len(k.Attempts) == 0 && k.Family != "source" {
		return nil
	}
	source, from := t, o
	if up := k.Upstream(o); len(up) > 0 {
		if k.Source == nil {
			return nil
		}
		source, from = up[0], s.objects[key(up[0])]
		f.Fetch = sub.again()
		f.NextReconciliation = s.nextReconciliation(sub)
	} else {
		f.Applied, f.AppliedAt, f.Fetch = "", time.Time{}, sub.command("reconcile")
	}
	// A chart comes out of a repository, which is what is fetched.
	for range sourceDepth {
		up := s.kindOf(source).Upstream(from)
		if len(up) != 1 || from == nil {
			break
		}
		next := s.objects[key(up[0])]
		if k := s.kindOf(up[0]); next == nil || k.Static != nil && k.Static(next) {
			break
		}
		source, from = up[0], next
	}
	f.Source = key(source)
	if from != nil {
		f.fetched(s, s.kindOf(f.Source), from)
	}
	if f.Applied == "" && f.Fetched == "" {
		return nil
	}
	return f
}

// sourceDepth is how many sources are above one another: a chart and a
// repository, or an artifact, its generator and the source of that.
const sourceDepth = 3

// fetched reads what a source has, and when it looks for a newer revision.
func (f *Facts) fetched(s *snapshot, k controllers.Kind, o controllers.Object) {
	f.Fetched, f.SourceInterval = k.Result.String(o), duration(o, "spec.interval")
	f.SourceSuspended = k.Suspension.Is(o)
	f.Address = controllers.Path{k.Fetch.Address}.String(o)
	f.FetchedAt = moment(controllers.Path{"status.artifact.lastUpdateTime"}.String(o))
	if f.SourceSuspended || f.SourceInterval == 0 {
		return
	}
	// A fetch that finds nothing new leaves no trace: only one that stored a
	// revision, or that somebody requested, is known.
	last := f.FetchedAt
	if asked := moment(controllers.Path{"status.lastHandledReconcileAt"}.String(o)); asked.After(last) {
		last = asked
	}
	if next := last.Add(f.SourceInterval); next.After(s.Now) {
		f.NextFetch = next
	}
}

// nextReconciliation is when an object is due again; zero where that is not
// known. Only a Kustomization's history has every reconciliation.
func (s *snapshot) nextReconciliation(sub subject) time.Time {
	interval := duration(sub.object, "spec.interval")
	entry := controllers.Path{"status.history[0].lastReconciled"}.String(sub.object)
	last := moment(entry)
	if next := last.Add(interval); interval > 0 && !last.IsZero() && next.After(s.Now) {
		return next
	}
	return time.Time{}
}

// correction is what the controller of an applier does about an object that is
// not as applied: when, and the commands that have it done now.
func (s *snapshot) correction(sub subject) (detail string, remedies []string) {
	if sub.kind.Drift == nil { // every reconciliation applies all objects
		detail = fmt.Sprintf("%s corrects it with the next reconciliation", sub.kind.Controller)
		if next := s.nextReconciliation(sub); !next.IsZero() {
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
	return detail, []string{sub.command("reconcile", "--force"), fmt.Sprintf("to have it corrected always, set %s: enabled in %s", sub.kind.Drift[0], targetOf(sub.kind, sub.object))}
}

// duration reads a field such as spec.interval, zero where there is none.
func duration(o controllers.Object, field string) time.Duration {
	d, err := time.ParseDuration(controllers.Path{field}.String(o))
	if err != nil {
		return 0
	}
	return d
}

// moment reads a time, zero where there is none.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
