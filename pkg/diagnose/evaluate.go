package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

const (
	// newRevisionGrace is the time that a controller has to start reconciling a new revision before the delay is reported.
	newRevisionGrace = time.Minute
	// namespacesShown is the maximum number of namespaces to list for a missing object that exists elsewhere.
	namespacesShown = 3
)

// evaluation derives findings from the status of the objects that were read. It sends no requests and is not safe for concurrent
// use.
type evaluation struct {
	snapshot     *observe.Snapshot
	installation *installation
	home         string
	now          time.Time
	// known caches the findings of objects, since many objects wait for the same few objects.
	known map[controllers.ID]evaluated
	// sets caches the ResourceSets that are not ready, nil before the first use.
	sets []controllers.ID
}

type evaluated struct {
	finding *rules.Finding
	waits   bool
}

// subject returns the subject of an object of the snapshot.
func (e *evaluation) subject(t controllers.ID) rules.Subject {
	return rules.NewSubject(observe.KindOf(t), e.snapshot.Objects[t], e.home)
}

// of returns the finding for one object according to its own status, or nil if it is healthy. waits reports whether the object
// waits for other objects, which may be the root cause.
func (e *evaluation) of(t controllers.ID) (f *rules.Finding, waits bool) {
	result, known := e.known[t]
	if !known {
		result.finding, result.waits = e.evaluate(t)
		e.known[t] = result
	}
	return result.finding, result.waits
}

func (e *evaluation) evaluate(t controllers.ID) (f *rules.Finding, waits bool) {
	o, there := e.snapshot.Objects[t]
	if !there {
		return e.missing(t), len(e.snapshot.Graph.From(t)) > 0
	}
	s := e.subject(t)
	k := s.Kind
	down, isDown := e.installation.down[k.Controller]
	switch {
	case s.Text("metadata.deletionTimestamp") != "":
		if isDown {
			return &down, false
		}
		deletion, _ := e.installation.deletion(t, o)
		return &deletion, false
	case k.Suspension.Is(o):
		f := suspended(s)
		return &f, false
	case k.IsReady(o) && (!isDown || k.Static != nil && k.Static(o)):
		if f := e.withoutProvider(t); f != nil {
			return f, true
		}
		if f := e.dangling(t); f != nil {
			return f, false
		}
		f := e.behind(s)
		if f == nil {
			return nil, false
		}
		return e.unlessCrashed(k, f), false
	case isDown:
		return &down, false
	}
	status, waits := s.Status()
	lasts := status.Code == "unreconciled" || status.Code == "progressing"
	if f, is := e.installation.unwatched(k, o); is && lasts {
		return &f, false
	}
	if lasts {
		f := e.unlessCrashed(k, &status)
		return f, f == &status
	}
	return &status, waits
}

// suspended returns the finding for a suspended object.
func suspended(s rules.Subject) rules.Finding {
	message := "it is suspended"
	if why := controllers.SuspensionReason(s.Object); why != "" {
		message += ": " + why
	}
	return rules.Finding{Object: s.ID(), Code: "suspended", Message: message, Fixes: []string{s.Command("resume")}}
}

// unlessCrashed returns f, the finding for an unfinished reconciliation, or the finding for the controller if it has crashed
// since then.
func (e *evaluation) unlessCrashed(k controllers.Kind, f *rules.Finding) *rules.Finding {
	if crash, ok := e.installation.crashedSince(k.Controller, f.Since); ok {
		return &crash
	}
	return f
}

// behind returns the finding for a ready object that has not been reconciled to the current revision of its source within
// newRevisionGrace.
func (e *evaluation) behind(s rules.Subject) *rules.Finding {
	for _, edge := range e.snapshot.Graph.From(s.ID()) {
		source := e.snapshot.Objects[edge.To]
		k := observe.KindOf(edge.To)
		if edge.Relation != "source" || source == nil {
			continue
		}
		fetched, at := k.Result.String(source), controllers.Path{"status.artifact.lastUpdateTime"}.String(source)
		when, err := time.Parse(time.RFC3339, at)
		if err != nil || fetched == "" || s.Kind.Tried(s.Object, k, fetched) || e.now.Sub(when) < newRevisionGrace {
			continue
		}
		return &rules.Finding{
			Object: s.ID(), Code: "behind", Retry: s.Command("reconcile"),
			Message: fmt.Sprintf("not yet reconciled to %s, which %s fetched at %s", fetched, edge.To, when.UTC().Format(time.RFC3339)),
		}
	}
	return nil
}

// withoutProvider returns the finding for an object whose Provider does not exist.
func (e *evaluation) withoutProvider(t controllers.ID) *rules.Finding {
	provider, sends := providerOf(observe.KindOf(t), e.snapshot.Objects[t])
	if !sends || e.snapshot.Objects[provider] != nil || e.snapshot.Hidden(provider) != nil {
		return nil
	}
	return &rules.Finding{Object: t, Code: "waiting", Message: "notifications are not sent: the Provider does not exist"}
}

// dangling returns the finding for an object that watches other objects, one of which does not exist.
func (e *evaluation) dangling(t controllers.ID) *rules.Finding {
	for _, edge := range e.snapshot.Graph.From(t) {
		if edge.Waits() || !e.snapshot.Graph.Vertex(edge.To).Missing {
			continue
		}
		field := controllers.FieldOf(observe.KindOf(t), edge.Relation)
		f := &rules.Finding{Object: t, Code: "missing-reference", Message: fmt.Sprintf("%s in %s does not exist", edge.To, field)}
		f.Fixes = append(e.elsewhere(edge.To), fmt.Sprintf("correct %s of %s, or create %s", field, t, edge.To))
		return f
	}
	return nil
}

// elsewhere returns the fixes for a reference to an object that exists with another kind or in another namespace.
func (e *evaluation) elsewhere(t controllers.ID) []string {
	if others := e.snapshot.Siblings(t); len(others) > 0 {
		return []string{fmt.Sprintf("%s exists: set the kind of the reference to %s", others[0], others[0].Kind)}
	}
	namespaces := e.snapshot.Namespaces(t)
	switch n := len(namespaces); {
	case n > namespacesShown:
		return []string{fmt.Sprintf("found in %d namespaces, such as %s: set the namespace of the reference", n, strings.Join(namespaces[:namespacesShown], ", "))}
	case n > 0:
		return []string{fmt.Sprintf("found in namespace %s: set the namespace of the reference", strings.Join(namespaces, ", "))}
	}
	return nil
}

// missing returns the finding for a referenced object that does not exist, or nil if its existence is unknown.
func (e *evaluation) missing(t controllers.ID) *rules.Finding {
	if e.snapshot.Hidden(t) != nil {
		return nil
	}
	f := &rules.Finding{Object: t, Code: "missing", Message: "it does not exist"}
	f.Fixes = e.elsewhere(t)
	create := "create it, or correct the reference to it"
	if k := observe.KindOf(t); k.Required != "" {
		create = "correct the reference to it, or create it: flux create " + k.Noun() + hint.Command(" %s -n %s ", t.Name, t.Namespace) + k.Required
	}
	f.Fixes = append(f.Fixes, create)
	return f
}

// chain returns the findings from an object to its root cause, or nil if the object is healthy.
func (e *evaluation) chain(t controllers.ID) []rules.Finding {
	var chain []rules.Finding
	at := map[controllers.ID]int{}
	for {
		at[t] = len(chain)
		f, waits := e.of(t)
		if f == nil {
			return chain
		}
		chain = append(chain, *f)
		next, found := e.unhealthy(t, *f)
		if !found && waits {
			next, found = e.awaited(t, f.Code == "waiting")
		}
		if !found && f.Code == "missing" {
			next, found = e.creator(t)
		}
		if !found {
			if waits {
				chain[len(chain)-1] = e.ownFailure(*f)
			}
			return e.withoutGrace(chain)
		}
		if first, seen := at[next]; seen {
			return append(chain, cycle(chain[first:]))
		}
		t = next
	}
}

// awaited returns the object that an object waits for. Sources precede dependencies, and the first object with a problem is
// returned. Even a ready source may block a waiting object: the source is suspended at an earlier revision, or its artifact is
// unavailable because its controller is down.
func (e *evaluation) awaited(t controllers.ID, reported bool) (controllers.ID, bool) {
	for _, relation := range []string{"source", "include", "image", "dependency", "input", "provider"} {
		for _, edge := range e.snapshot.Graph.From(t) {
			if edge.Relation != relation {
				continue
			}
			up := edge.To
			if o, there := e.snapshot.Objects[up]; there && !reported && observe.KindOf(up).IsReady(o) {
				continue
			}
			if f, _ := e.of(up); f != nil {
				return up, true
			}
		}
	}
	return controllers.ID{}, false
}

// passes reports whether a suspended object passes health checks: its controller has reconciled its current generation before.
// flux suspend changes the generation.
func (e *evaluation) passes(t controllers.ID) bool {
	k, o := observe.KindOf(t), e.snapshot.Objects[t]
	return k.Suspension.Is(o) && (!k.HasConditions() || controllers.Observed(o) && k.Ready(o).Status != "False")
}

// unhealthy returns the Flux object whose health keeps an object from being ready: one that its failed health check lists, or
// one that is not ready while the check runs.
func (e *evaluation) unhealthy(t controllers.ID, f rules.Finding) (controllers.ID, bool) {
	if f.Code != "health" && f.Code != "progressing" {
		return controllers.ID{}, false
	}
	named := e.subject(t).Failure().Objects
	for _, edge := range e.snapshot.Graph.From(t) {
		is := func(o failure.ObjectStatus) bool {
			return o.Kind == edge.To.Kind && o.Name == edge.To.Name && (o.Namespace == "" || o.Namespace == edge.To.Namespace)
		}
		if edge.Relation != "health" || f.Code == "health" && !slices.ContainsFunc(named, is) || f.Code == "progressing" && e.passes(edge.To) {
			continue
		}
		if f, _ := e.of(edge.To); f != nil {
			return edge.To, true
		}
	}
	return controllers.ID{}, false
}

// withoutGrace makes the root of a chain a problem regardless of its age if a health check in the chain has failed: the check
// has waited long enough.
func (e *evaluation) withoutGrace(chain []rules.Finding) []rules.Finding {
	if slices.ContainsFunc(chain, func(f rules.Finding) bool { return f.Code == "health" }) {
		chain[len(chain)-1].Since = time.Time{}
	}
	return chain
}

// ownFailure returns the failure in the message of a waiting object, if none of its dependencies has a problem.
func (e *evaluation) ownFailure(f rules.Finding) rules.Finding {
	if _, there := e.snapshot.Objects[f.Object]; !there || f.Code != "waiting" {
		return f
	}
	if found, ok := e.subject(f.Object).Classify(); ok {
		return found.Finding
	}
	return f
}

// cycle returns the finding for a circular dependency. It does not depend on the order of the chain.
func cycle(chain []rules.Finding) rules.Finding {
	var members []controllers.ID
	for _, f := range chain {
		members = append(members, f.Object)
	}
	first := slices.Index(members, slices.MinFunc(members, func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) }))
	members = slices.Concat(members[first:], members[:first])
	var names []string
	for _, t := range append(slices.Clone(members), members[0]) {
		names = append(names, t.String())
	}
	t := members[0]
	return rules.Finding{
		Object: t, Code: "cycle", Message: "circular dependency: " + strings.Join(names, " → "), Cycle: members,
		Fixes: []string{
			"remove one of these dependencies from spec.dependsOn",
			hint.Command("flux deps "+strings.ToLower(t.Kind)+" %s -n %s", t.Name, t.Namespace),
		},
	}
}
