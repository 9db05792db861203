package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// judge derives findings from the status of the objects that were read. It sends
// no requests, and is used by one goroutine at a time.
type judge struct {
	*snapshot
	*installation
	// judged caches the findings of local, since many objects wait for the same few objects.
	judged map[controllers.ID]judgment
}

type judgment struct {
	finding *Finding
	waits   bool
}

// local returns the finding for one object according to its own status, or nil if it is healthy.
// waits reports whether the object waits for other objects, which may have the root cause.
func (s *judge) local(t controllers.ID) (f *Finding, waits bool) {
	known, ok := s.judged[t]
	if !ok {
		known.finding, known.waits = s.judge(t)
		s.judged[t] = known
	}
	return known.finding, known.waits
}

func (s *judge) judge(t controllers.ID) (f *Finding, waits bool) {
	o, there := s.objects[t]
	if !there {
		return s.missing(t), false
	}
	k := kindOf(t)
	sub := s.subject(k, o)
	down, broken := s.down[k.Controller]
	finding := func(code, message string, remedies ...string) *Finding {
		return &Finding{Object: t, Code: code, Message: message, Remedies: remedies}
	}
	switch {
	case controllers.Path{"metadata.deletionTimestamp"}.String(o) != "":
		if broken {
			return &down, false
		}
		return s.deleting(sub), false
	case k.Suspension.Is(o):
		note := "it is suspended"
		if why := controllers.SuspensionReason(o); why != "" {
			note += ": " + why
		}
		return finding("suspended", note, sub.command("resume")), false
	case k.IsReady(o) && (!broken || k.Static != nil && k.Static(o)):
		if f := s.unprovided(t); f != nil {
			return f, true
		}
		return s.unlessCrashed(k, s.behind(sub)), false
	case broken:
		return &down, false
	}
	if f := progress(sub); f != nil {
		judged := s.unlessCrashed(k, f)
		return judged, judged == f
	}
	if slices.Contains(upstream, sub.ready.Reason) {
		f := finding("waiting", oneLine(sub.ready.Message), sub.again())
		f.Since = sub.since("Ready")
		return f, true
	}
	found, recognized := recognize(sub)
	switch {
	case controllers.RetriesExhausted(o):
		return exhausted(sub, found, recognized), false
	case recognized:
		return &found.Finding, found.upstream
	default:
		return finding("not-ready", spoken(sub.ready), sub.logs(), sub.again()), false
	}
}

// unlessCrashed returns the finding for an object whose reconciliation has not finished, or that for its
// controller if that crashes meanwhile.
func (s *judge) unlessCrashed(k controllers.Kind, f *Finding) *Finding {
	if f == nil {
		return nil
	}
	if crashed, ok := s.crashed(k.Controller, f.Since); ok {
		return crashed
	}
	return f
}

// exhausted returns the finding for a release without further retries: the
// failure, with the exhausted retries as a detail.
func exhausted(sub subject, found classified, recognized bool) *Finding {
	failed := sub.attempt()
	f := Finding{
		Object: sub.id(), Code: "retries-exhausted", Message: "retries exhausted: " + spoken(failed),
		Remedies: []string{"fix the cause, commit and push"},
	}
	if recognized {
		f = found.Finding
		f.Details = append(f.Details, "retries exhausted: "+oneLine(failed.Message))
		f.Remedies = f.Remedies[:len(f.Remedies)-1]
	}
	f.Remedies = append(f.Remedies, sub.command("reconcile", "--with-source", "--reset")+" # resets the failure counts, then tries again")
	return &f
}

// spoken returns the reason and message of a condition in one line.
func spoken(r controllers.Readiness) string { return join(r.Reason, r.Message) }

// behind returns the finding for a ready object that has not been reconciled to
// the current revision of its source within newRevisionGrace.
func (s *judge) behind(sub subject) *Finding {
	for _, e := range s.graph.From(sub.id()) {
		source := s.objects[e.To]
		k := kindOf(e.To)
		if e.Relation != "source" || source == nil {
			continue
		}
		fetched, at := k.Result.String(source), controllers.Path{"status.artifact.lastUpdateTime"}.String(source)
		when, err := time.Parse(time.RFC3339, at)
		if err != nil || fetched == "" || sub.kind.Tried(sub.object, k, fetched) || s.Now.Sub(when) < newRevisionGrace {
			continue
		}
		return &Finding{
			Object: sub.id(), Code: "behind", Remedies: []string{sub.command("reconcile")},
			Message: fmt.Sprintf("not yet reconciled to %s, which %s fetched at %s", fetched, e.To, when.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}

// missing returns the finding for a referenced object that does not exist.
func (s *judge) missing(t controllers.ID) *Finding {
	if s.hidden(t) != nil {
		return nil // whether it exists is unknown
	}
	f := &Finding{Object: t, Code: "missing", Message: "it does not exist"}
	elsewhere := slices.Clone(s.namesakes(t))
	slices.Sort(elsewhere)
	switch n := len(elsewhere); {
	case n > namespacesShown:
		f.Remedies = append(f.Remedies, fmt.Sprintf("it exists in %d namespaces, such as %s: name one in the reference", n, strings.Join(elsewhere[:namespacesShown], ", ")))
	case n > 0:
		f.Remedies = append(f.Remedies, fmt.Sprintf("it exists in namespace %s: name that in the reference", strings.Join(elsewhere, ", ")))
	}
	f.Remedies = append(f.Remedies, createIt(t))
	return f
}

// createIt returns the remedy for a referenced object that does not exist, with the command that
// creates it if there is one.
func createIt(t controllers.ID) string {
	k := kindOf(t)
	if k.Required == "" {
		return "create it, or correct the reference to it"
	}
	return "correct the reference to it, or create it: flux create " + k.Noun() + hint.Command(" %s -n %s ", t.Name, t.Namespace) + k.Required
}

// namespacesShown is the maximum number of namespaces to name that have an
// object with the name of a missing one.
const namespacesShown = 3
