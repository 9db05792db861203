package assert

import (
	"strings"
	"testing"
	"time"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/expression/cel"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// observed is a runner that sees what a test puts into its hub.
type observed struct {
	*testing.T
	observer
	version int
}

func observe(t *testing.T) *observed {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC) }
	return &observed{T: t, observer: observer{&Runner{Evaluator: cel.New(), Now: now, Sink: &Sink{}, hub: newHub(nil, now)}}}
}

// know makes the hub know an object that does not exist, and its owner.
func (o *observed) know(refs ...Ref) {
	for _, r := range refs {
		o.hub.objects[r.key()] = &history{ref: r, listed: true}
	}
}

// see puts a state of an object into the hub.
func (o *observed) see(r Ref, object controllers.Object) {
	o.version++
	object["apiVersion"], object["kind"] = r.APIVersion, r.Kind
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["namespace"], metadata["name"], metadata["resourceVersion"] = r.Namespace, r.Name, strings.Repeat("1", o.version)
	object["metadata"] = metadata
	o.hub.set(o.Context(), r, object, nil)
}

func (o *observed) lose(r Ref) { o.hub.set(o.Context(), r, nil, o.hub.of(r).object) }

// expect checks the evaluation of an assertion from a moment on: "" for one that holds.
func (o *observed) expect(e Expectation, from int, want string) {
	o.Helper()
	o.check(&check{Expectation: &e, from: from}, want)
}

func (o *observed) check(c *check, want string) {
	o.Helper()
	j := o.evaluate(o.Context(), c)
	got := j.actual
	if j.unknown != "" {
		got = "? " + j.unknown
	}
	if j.holds != (want == "") || got != want {
		o.Errorf("%s: holds %t: %q, want %q", c, j.holds, got, want)
	}
}

func condition(status, reason, message string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message}}}
}

var (
	settings = Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "settings"}
	secret   = Ref{APIVersion: "v1", Kind: "Secret", Namespace: "apps", Name: "token"}
	apps     = Ref{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	infra    = Ref{Kind: "Kustomization", Namespace: "flux-system", Name: "infra"}
)

func TestExistence(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.expect(Expectation{Exists: &settings}, 0, "? ConfigMap/apps/settings has not been read")
	o.know(settings, secret)
	o.expect(Expectation{Exists: &settings}, 0, "it does not exist")
	o.expect(Expectation{Absent: &settings}, 0, "")
	o.see(settings, controllers.Object{})
	o.expect(Expectation{Exists: &settings}, 0, "")
	o.expect(Expectation{Absent: &settings}, 0, "it exists")
	o.see(settings, controllers.Object{"metadata": map[string]any{"deletionTimestamp": "2026-11-01T10:00:00Z", "finalizers": []any{"a/b"}}})
	o.expect(Expectation{Exists: &settings}, 0, "it is being deleted")
	o.expect(Expectation{Absent: &settings}, 0, "it is being deleted, finalizers: a/b")
	o.lose(settings)
	o.expect(Expectation{Exists: &settings}, 0, "it was deleted")
	o.expect(Expectation{Absent: &settings}, 0, "")
	// A kind that does not exist: that nothing of it exists is not known.
	o.hub.update(secret, func(h *history) { h.unserved = true })
	o.expect(Expectation{Absent: &secret}, 0, "? the API server does not serve Secret in v1")
}

// TestBlame checks that a result about an object that does not exist names what is not ready, with a message that other
// results do not repeat.
func TestBlame(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.described = map[string]bool{}
	o.know(settings, secret)
	o.hub.update(secret, func(h *history) { h.unserved = true })
	cause := func(name, message string) diagnose.Cause {
		return diagnose.Cause{Chain: []rules.Finding{{Object: controllers.ID{Kind: "Kustomization", Namespace: "apps", Name: name}, Message: message}}}
	}
	causes := []diagnose.Cause{cause("a", "the build failed"), cause("b", "the path does not exist")}
	absent, unserved := o.exists(settings), o.exists(secret)
	if !absent.absent || !unserved.absent || o.absent(settings).absent {
		t.Error("an object that does not exist is not marked")
	}
	absent.explain(o.describe(causes[:1]))
	unserved.explain(o.describe(causes))
	if absent.actual != "it does not exist; not ready: Kustomization/apps/a: the build failed" ||
		unserved.unknown != "the API server does not serve Secret in v1; not ready: Kustomization/apps/a; Kustomization/apps/b: the path does not exist" {
		t.Errorf("%q, %q", absent.actual, unserved.unknown)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(settings, secret)
	for _, ref := range []Ref{settings, secret} {
		o.see(ref, controllers.Object{"data": map[string]any{"color": "blue"}, "n": int64(3), "f": 3.0})
	}
	value := func(ref Ref, text string, equals ...any) Expectation {
		v := &Value{Object: ref, Expression: text}
		if len(equals) > 0 {
			v.Equals = &equals[0]
		}
		return Expectation{Value: v}
	}
	o.expect(value(settings, "object.data.color", "blue"), 0, "")
	o.expect(value(settings, "object.data.color", "red"), 0, `it is "blue"`)
	o.expect(value(settings, "object.data.shade", "blue"), 0, "it has no value: no such key: shade")
	o.expect(value(settings, "object.data.color == 'blue'"), 0, "")
	o.expect(value(settings, "object.data.color == 'red'"), 0, "it is false")
	o.expect(value(settings, "object.n", int64(3)), 0, "")
	o.expect(value(settings, "object.f", int64(3)), 0, "")
	o.expect(value(settings, "object.n", "3"), 0, "it is 3")
	o.expect(value(settings, "object.data", map[string]any{"color": "blue"}), 0, "")
	o.expect(value(settings, "object.data", map[string]any{"color": "blue", "more": nil}), 0, `it is {"color":"blue"}`)
	o.expect(value(secret, "object.data.color", "blue"), 0, "")
	o.expect(value(secret, "object.data.color", "red"), 0, "it has a different value (not shown because the object is a Secret)")
}

func TestReady(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(apps)
	ready := func(n int) Expectation { return Expectation{Ready: &Ready{apps, n}} }
	o.see(apps, controllers.Object{})
	o.expect(ready(0), 0, "it is not ready: waiting to be reconciled")
	for _, message := range []string{"first", "second"} {
		o.see(apps, controllers.Object{"status": condition("Unknown", "Progressing", "reconciling")})
		o.see(apps, controllers.Object{"status": condition("False", "BuildFailed", message)})
	}
	o.see(apps, controllers.Object{"status": condition("False", "DependencyNotReady", "not an attempt")})
	o.expect(ready(0), 0, "it is not ready: not an attempt")
	before := o.hub.mark()
	o.see(apps, controllers.Object{"status": condition("True", "ReconciliationSucceeded", "done")})
	o.see(apps, controllers.Object{"status": condition("True", "ReconciliationSucceeded", "done"), "other": "change"})
	o.expect(ready(0), 0, "")
	o.expect(ready(3), 0, "")
	o.expect(ready(2), 0, "it is ready after 3 reconciliations")
	o.expect(ready(1), before, "")
	// The condition is about an earlier generation.
	stale := condition("True", "ReconciliationSucceeded", "done")
	stale["observedGeneration"] = int64(1)
	o.see(apps, controllers.Object{"metadata": map[string]any{"generation": int64(2)}, "status": stale})
	o.expect(ready(0), 0, "it is not ready: done")
	o.see(apps, controllers.Object{"spec": map[string]any{"suspend": true}, "status": condition("True", "ReconciliationSucceeded", "done")})
	o.expect(ready(0), 0, "it is suspended")
}

func TestPruned(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(settings, secret, apps)
	pruned := func(r Ref) Expectation { return Expectation{Pruned: &r} }
	o.expect(pruned(settings), 0, "it has never existed")
	inventory := func(ids ...any) controllers.Object {
		var entries []any
		for _, id := range ids {
			entries = append(entries, map[string]any{"id": id, "v": "v1"})
		}
		return controllers.Object{"status": map[string]any{"inventory": map[string]any{"entries": entries}}}
	}
	const id = "apps_settings__ConfigMap"
	labels := map[string]any{"labels": map[string]any{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}
	o.see(apps, inventory(id))
	o.see(settings, controllers.Object{"metadata": labels})
	o.see(secret, controllers.Object{})
	o.expect(pruned(settings), 0, "it exists")
	before := o.hub.mark()
	o.lose(settings)
	o.lose(secret)
	o.expect(pruned(settings), before, "it was deleted, but is still in the inventory of Kustomization/flux-system/apps")
	o.see(apps, inventory())
	o.expect(pruned(settings), before, "")
	o.expect(pruned(settings), o.hub.mark(), "it was deleted before the step")
	o.expect(pruned(secret), before, "it was deleted, but no Flux object had applied it")
}

func TestCorrected(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(settings)
	data := func(color string, more ...string) controllers.Object {
		d := map[string]any{"color": color}
		for _, key := range more {
			d[key] = "x"
		}
		return controllers.Object{"data": d}
	}
	merge := Object{"data": map[string]any{"color": "red", "more": "x"}}
	c := &check{Expectation: &Expectation{Corrected: &Patch{settings, merge}}}
	o.see(settings, data("blue"))
	before := o.hub.of(settings).object
	o.check(c, "? it has not been changed")
	changed := data("red", "more")
	changed["metadata"] = map[string]any{"resourceVersion": "11"}
	c.drift = &drift{before, changed}
	o.check(c, "the change has not been observed")
	o.see(settings, data("red", "more"))
	o.check(c, "the change to data.color, data.more was not reverted")
	o.see(settings, data("blue", "more"))
	o.check(c, "the change to data.more was not reverted")
	o.see(settings, data("blue", "unrelated"))
	o.check(c, "")
	o.lose(settings)
	o.check(c, "it was deleted")
}

func TestEvent(t *testing.T) {
	t.Parallel()
	o := observe(t)
	event := func(kind, name, reason, message string) {
		o.hub.event(controllers.Object{
			"involvedObject": map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": kind, "namespace": "flux-system", "name": name},
			"type":           "Normal", "reason": reason, "message": message,
		})
	}
	pattern := func(text string) *Pattern {
		p := &Pattern{}
		d := decoder{}
		d.pattern(scalar(text), "", p)
		return p
	}
	want := func(p EventPattern) Expectation { p.Object = apps; return Expectation{Event: &p} }
	o.expect(want(EventPattern{Reason: "Succeeded"}), 0, "there is none")
	event("Kustomization", "other", "Succeeded", "applied")
	event("HelmRelease", "apps", "Succeeded", "applied")
	o.expect(want(EventPattern{Reason: "Succeeded"}), 0, "there is none")
	event("Kustomization", "apps", "Progressing", "Succeeded")
	o.expect(want(EventPattern{Reason: "Succeeded"}), 0, "only found 1 other event: Progressing: Succeeded")
	before := o.hub.mark()
	event("Kustomization", "apps", "Succeeded", "applied revision 1")
	o.expect(want(EventPattern{Reason: "Succeeded"}), before, "")
	o.expect(want(EventPattern{Reason: "Succeeded", Type: "Normal", Message: pattern("revision [0-9]")}), 0, "")
	o.expect(want(EventPattern{Reason: "Succeeded", Message: pattern("^revision")}), before, "only found 1 other event: Succeeded: applied revision 1")
	o.expect(want(EventPattern{Reason: "Succeeded", Type: "Warning"}), before, "only found 1 other event: Succeeded: applied revision 1")
	o.expect(want(EventPattern{Reason: "Succeeded"}), o.hub.mark(), "there is none")
}

func TestOrder(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(apps, infra)
	order := func(refs ...Ref) Expectation { return Expectation{Order: refs} }
	ready := func(r Ref, status string) {
		o.see(r, controllers.Object{"status": condition(status, "Test", "")})
	}
	ready(infra, "True")
	ready(apps, "False")
	o.expect(order(infra, apps), 0, "Kustomization/flux-system/apps is not ready")
	middle := o.hub.mark()
	ready(apps, "True")
	o.expect(order(infra, apps), 0, "")
	o.expect(order(apps, infra), 0, "Kustomization/flux-system/infra became ready before Kustomization/flux-system/apps")
	o.expect(order(infra, apps), middle, "Kustomization/flux-system/infra was ready before the step")
	// They recover in the other order.
	for _, r := range []Ref{infra, apps} {
		ready(r, "False")
	}
	middle = o.hub.mark()
	ready(apps, "True")
	ready(infra, "True")
	o.expect(order(apps, infra), middle, "")
	ready(apps, "Unknown")
	ready(apps, "True")
	o.expect(order(apps, infra), middle, "")
	o.expect(order(infra, apps), middle, "Kustomization/flux-system/apps became ready before Kustomization/flux-system/infra")
}

// TestBegin checks the first step after the head of an upgrade was pushed: what happened with the base
// does not count, except that an object which the head does not change became ready then.
func TestBegin(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(apps, infra, settings)
	ready := func(r Ref, status, reason string) {
		o.see(r, controllers.Object{"status": condition(status, reason, "")})
	}
	for _, r := range []Ref{apps, infra} {
		ready(r, "Unknown", "Progressing")
		ready(r, "True", "Base")
	}
	o.began = o.hub.mark()
	o.expect(Expectation{Order: []Ref{apps, infra}}, o.began, "")
	ready(apps, "Unknown", "Progressing")
	ready(apps, "True", "Head")
	o.expect(Expectation{Order: []Ref{infra, apps}}, o.began, "")
	o.expect(Expectation{Order: []Ref{apps, infra}}, o.began, "Kustomization/flux-system/infra became ready before Kustomization/flux-system/apps")
	o.expect(Expectation{Ready: &Ready{Object: apps, Reconciliations: 1}}, o.began, "")
	o.expect(Expectation{Ready: &Ready{Object: apps, Reconciliations: 1}}, 0, "it is ready after 2 reconciliations")
	// A later step does not look at the base.
	ready(apps, "Unknown", "Progressing")
	step := o.hub.mark()
	ready(apps, "True", "Step")
	o.expect(Expectation{Order: []Ref{infra, apps}}, step, "Kustomization/flux-system/infra was ready before the step")
}

// TestOrderOfMissedStates checks what is known about the order if states arrive late or not at all.
func TestOrderOfMissedStates(t *testing.T) {
	t.Parallel()
	type state struct {
		ref                  Ref
		version, ready, time string
	}
	const unready, ready = "False", "True"
	start := []state{{infra, "10", ready, "10:00:00"}, {apps, "11", ready, "10:00:00"}}
	for name, c := range map[string]struct {
		states []state
		want   string
	}{
		"all seen":           {[]state{{infra, "12", unready, "10:01:00"}, {apps, "13", unready, "10:01:00"}, {infra, "14", ready, "10:01:00"}, {apps, "15", ready, "10:01:00"}}, ""},
		"in the other order": {[]state{{infra, "12", unready, "10:01:00"}, {apps, "13", unready, "10:01:00"}, {apps, "14", ready, "10:01:00"}, {infra, "15", ready, "10:01:00"}}, "Kustomization/flux-system/apps became ready before Kustomization/flux-system/infra"},
		"arrived late":       {[]state{{apps, "13", unready, "10:01:00"}, {apps, "15", ready, "10:01:00"}, {infra, "12", unready, "10:01:00"}, {infra, "14", ready, "10:01:00"}}, ""},
		"failure missed":     {[]state{{infra, "14", ready, "10:01:00"}, {apps, "13", unready, "10:01:00"}, {apps, "15", ready, "10:01:00"}}, ""},
		"failure missed, and read after a later change": {[]state{{infra, "19", ready, "10:01:00"}, {apps, "13", unready, "10:01:00"}, {apps, "15", ready, "10:01:01"}}, ""},
		"read later in the same second":                 {[]state{{infra, "19", ready, "10:01:00"}, {apps, "13", unready, "10:01:00"}, {apps, "15", ready, "10:01:00"}}, "? cannot determine whether Kustomization/flux-system/infra or Kustomization/flux-system/apps became ready first: the watch was interrupted"},
		"second failure missed":                         {[]state{{infra, "12", unready, "10:01:00"}, {infra, "14", ready, "10:01:00"}, {apps, "19", ready, "10:01:01"}}, "? cannot determine whether Kustomization/flux-system/infra or Kustomization/flux-system/apps became ready first: the watch was interrupted"},
		"no failure":                                    {[]state{{infra, "14", ready, "10:00:00"}, {apps, "13", unready, "10:01:00"}, {apps, "15", ready, "10:01:00"}}, "Kustomization/flux-system/infra was ready before the step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe(t)
			o.know(apps, infra)
			put := func(states []state) {
				for _, s := range states {
					status := condition(s.ready, "Test", "")
					status["conditions"].([]any)[0].(map[string]any)["lastTransitionTime"] = "2026-11-01T" + s.time + "Z"
					o.hub.set(t.Context(), s.ref, controllers.Object{"metadata": map[string]any{"resourceVersion": s.version}, "status": status}, nil)
				}
			}
			put(start)
			from := o.hub.mark()
			put(c.states)
			o.expect(Expectation{Order: []Ref{infra, apps}}, from, c.want)
		})
	}
}

// TestStale checks that a state which is older than the known one is ignored.
func TestStale(t *testing.T) {
	t.Parallel()
	o := observe(t)
	o.know(settings)
	o.see(settings, controllers.Object{"data": "new"})
	old := controllers.Object{"metadata": map[string]any{"resourceVersion": "0"}, "data": "old"}
	o.hub.set(t.Context(), settings, old, nil)
	if got := o.hub.of(settings).object; got["data"] != "new" || kube.Older(got, old) {
		t.Errorf("got %v", got)
	}
}

func scalar(text string) *goyaml.Node {
	return &goyaml.Node{Kind: goyaml.ScalarNode, Tag: "!!str", Value: text}
}
