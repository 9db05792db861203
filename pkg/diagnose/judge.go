package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// local is what is wrong with one object as far as it tells itself; waits says
// that it waits for others, so that these know better. It is nil for one that
// is as it should be.
func (s *snapshot) local(t controllers.Target) (f *Finding, waits bool) {
	known, ok := s.judged[t]
	if !ok {
		known.finding, known.waits = s.judge(t)
		s.judged[t] = known
	}
	return known.finding, known.waits
}

func (s *snapshot) judge(t controllers.Target) (f *Finding, waits bool) {
	o, there := s.objects[t]
	if !there {
		return s.missing(t), false
	}
	k := s.kindOf(t)
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
	case fine(k, o) && (!broken || k.Static != nil && k.Static(o)):
		if f := s.unprovided(t); f != nil {
			return f, true
		}
		return s.behind(sub), false
	case broken:
		return &down, false
	}
	if f := progress(sub); f != nil {
		return f, true
	}
	if slices.Contains(upstream, sub.ready.Reason) {
		f := finding("waiting", oneLine(sub.ready.Message), sub.again())
		f.Since = sub.since("Ready")
		return f, true
	}
	found, recognised := recognise(sub)
	switch {
	case controllers.RetriesExhausted(o):
		return exhausted(sub, found, recognised), false
	case recognised:
		return &found.Finding, found.upstream
	default:
		return finding("not-ready", spoken(sub.ready), sub.logs(), sub.again()), false
	}
}

// exhausted is about a release that helm-controller does not try again: the
// failure comes first, that there are no more retries is a detail of it.
func exhausted(sub subject, found classified, recognised bool) *Finding {
	failed := sub.attempt()
	f := Finding{
		Object: targetOf(sub.kind, sub.object), Code: "retries-exhausted", Message: "retries exhausted: " + spoken(failed),
		Remedies: []string{"fix the cause, commit and push"},
	}
	if recognised {
		f = found.Finding
		f.Details = append(f.Details, "retries exhausted: "+oneLine(failed.Message))
		f.Remedies = f.Remedies[:len(f.Remedies)-1]
	}
	f.Remedies = append(f.Remedies, sub.command("reconcile", "--with-source", "--reset")+" # resets the failure counts, then tries again")
	return &f
}

// fine reports whether an object is ready at its present generation.
func fine(k controllers.Kind, o controllers.Object) bool {
	return k.Ready(o).Status == "True" && (controllers.Observed(o) || k.Static != nil && k.Static(o))
}

// spoken is what an object says of itself in a line.
func spoken(r controllers.Readiness) string { return join(r.Reason, r.Message) }

// behind returns the finding of an object that is ready and has not been
// reconciled to what its source has fetched, although it had the time.
func (s *snapshot) behind(sub subject) *Finding {
	for _, e := range s.graph.From(s.vertex(targetOf(sub.kind, sub.object))) {
		source := s.objects[target(e.To)]
		k := s.kindOf(target(e.To))
		if e.Relation != "source" || source == nil {
			continue
		}
		fetched, at := k.Result.String(source), controllers.Path{"status.artifact.lastUpdateTime"}.String(source)
		when, err := time.Parse(time.RFC3339, at)
		if err != nil || fetched == "" || sub.kind.Tried(sub.object, k, fetched) || s.Now.Sub(when) < patienceWithNews {
			continue
		}
		return &Finding{
			Object: targetOf(sub.kind, sub.object), Code: "behind", Remedies: []string{sub.command("reconcile")},
			Message: fmt.Sprintf("not yet reconciled to %s, which %s fetched at %s", fetched, target(e.To), when.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}

// missing returns the finding of an object that others refer to and that does not
// exist.
func (s *snapshot) missing(t controllers.Target) *Finding {
	if s.hidden(t) != nil {
		return nil // that could not be read
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
	f.Remedies = append(f.Remedies, "create it, or correct the reference to it")
	return f
}

// namespacesShown is how many namespaces are named that have an object of the
// name that is missing.
const namespacesShown = 3
