package assert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// evaluation is the current result of an assertion.
type evaluation struct {
	holds bool
	// actual is the state if the assertion does not hold, and unknown the reason if this cannot be determined.
	actual, unknown string
	since           time.Time
	// absent is set if the object does not exist, or its kind is not served.
	absent bool
}

func holds() evaluation { return evaluation{holds: true} }

// isState reports whether an assertion is about the state of objects instead of events since the start of a step.
func (e *Expectation) isState() bool {
	return e.Exists != nil || e.Absent != nil || e.Value != nil || e.Ready != nil || e.Committed != nil || e.Why != nil
}

// isLate reports whether an assertion may start to hold only after the controllers have reconciled,
// because events, notifications and commits are sent afterwards.
func (e *Expectation) isLate() bool {
	return e.Event != nil || e.Notification != nil || e.Committed != nil
}

// observer evaluates assertions against the observations of a runner.
type observer struct{ *Runner }

// evaluate evaluates an assertion.
func (r observer) evaluate(ctx context.Context, c *check) evaluation {
	switch {
	case c.Exists != nil:
		return r.exists(*c.Exists)
	case c.Absent != nil:
		return r.absent(*c.Absent)
	case c.Value != nil:
		return r.value(ctx, c.Value)
	case c.Ready != nil:
		return r.ready(c)
	case c.Pruned != nil:
		return r.pruned(c)
	case c.Corrected != nil:
		return r.corrected(c)
	case c.Event != nil:
		return r.event(c)
	case c.Notification != nil:
		return r.notification(c)
	case c.Committed != nil:
		return r.committed(ctx, c.Committed)
	case c.Why != nil:
		return r.why(ctx, c.Why)
	}
	return r.order(c)
}

// unread returns why the state of an object is unknown.
func unread(ref Ref, h history) (evaluation, bool) {
	switch {
	case h.err != nil:
		return evaluation{unknown: h.err.Error()}, true
	case h.unserved:
		gvk := ref.GroupVersionKind()
		return evaluation{unknown: fmt.Sprintf("the API server does not serve %s in %s", gvk.Kind, gvk.GroupVersion()), since: h.since, absent: true}, true
	case !h.listed:
		return evaluation{unknown: ref.String() + " has not been read"}, true
	}
	return evaluation{}, false
}

// existing returns an object, or an evaluation if it does not exist.
func (r observer) existing(ref Ref) (history, evaluation, bool) {
	h := r.hub.of(ref)
	if j, ok := unread(ref, h); ok {
		return h, j, false
	}
	switch {
	case h.object == nil && len(h.deleted) > 0:
		return h, evaluation{actual: "it was deleted", since: h.since, absent: true}, false
	case h.object == nil:
		return h, evaluation{actual: "it does not exist", absent: true}, false
	}
	return h, evaluation{}, true
}

func (r observer) exists(ref Ref) evaluation {
	h, j, ok := r.existing(ref)
	switch {
	case !ok:
		return j
	case deleting(h.object):
		return evaluation{actual: "it is being deleted", since: h.since}
	}
	return holds()
}

func deleting(o controllers.Object) bool {
	return controllers.Path{"metadata.deletionTimestamp"}.String(o) != ""
}

func (r observer) absent(ref Ref) evaluation {
	h := r.hub.of(ref)
	if j, ok := unread(ref, h); ok {
		return j
	}
	switch {
	case h.object != nil && deleting(h.object):
		return evaluation{actual: "it is being deleted, finalizers: " + strings.Join(kube.Finalizers(h.object), ", "), since: h.since}
	case h.object != nil:
		return evaluation{actual: "it exists", since: h.since}
	}
	return holds()
}

func (r observer) value(ctx context.Context, v *Value) evaluation {
	h, j, ok := r.existing(v.Object)
	if !ok {
		return j
	}
	text, err := json.Marshal(h.object)
	if err != nil {
		return evaluation{unknown: err.Error()}
	}
	answers, err := r.Evaluator.Evaluate(ctx, expression.Request{Expressions: []expression.Expression{v.expression()}, Object: text})
	if err != nil {
		return evaluation{unknown: err.Error()}
	}
	if failed := answers[0].Error; failed != "" {
		return evaluation{actual: "it has no value: " + failed, since: h.since}
	}
	var got any
	if err := utiljson.Unmarshal(answers[0].Value, &got); err != nil {
		return evaluation{unknown: err.Error()}
	}
	want := any(true)
	if v.Equals != nil {
		want = *v.Equals
	}
	if same(got, want) {
		return holds()
	}
	actual := "it is " + encoded(got)
	if gvk := v.Object.GroupVersionKind(); gvk.Group == "" && gvk.Kind == controllers.Secret && v.Equals != nil {
		actual = "it has a different value (not shown because the object is a Secret)"
	}
	return evaluation{actual: actual, since: h.since}
}

// same reports whether two values have the same JSON encoding.
func same(a, b any) bool {
	var values [2]any
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err != nil || json.Unmarshal(text, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// count returns the number of moments after a given one.
func count(moments []int, after int) int {
	n := 0
	for _, m := range moments {
		if m > after {
			n++
		}
	}
	return n
}

func (r observer) ready(c *check) evaluation {
	h, j, ok := r.existing(c.Ready.Object)
	if !ok {
		return j
	}
	k, _ := c.Ready.Object.flux()
	attempts := count(h.attempts, c.from)
	switch {
	case k.Suspension.Is(h.object):
		return evaluation{actual: "it is suspended", since: h.since}
	case !k.IsReady(h.object):
		ready := k.Ready(h.object)
		return evaluation{actual: strings.TrimSuffix("it is not ready: "+redact.Text(ready.Message), ": "), since: h.since}
	case c.Ready.Reconciliations > 0 && attempts > c.Ready.Reconciliations:
		return evaluation{actual: fmt.Sprintf("it is ready after %d reconciliations", attempts), since: h.since}
	}
	return holds()
}

// pruned reports whether the Flux object whose inventory contained an object has deleted it. An object
// that was deleted otherwise remains in the inventory.
func (r observer) pruned(c *check) evaluation {
	h := r.hub.of(*c.Pruned)
	if j, ok := unread(*c.Pruned, h); ok && len(h.deleted) == 0 {
		return j
	}
	switch {
	case h.object != nil:
		return evaluation{actual: "it exists", since: h.since}
	case h.last == nil:
		return evaluation{actual: "it has never existed"}
	case count(h.deleted, c.from) == 0:
		return evaluation{actual: "it was deleted before the step", since: h.since}
	}
	owner, ok := controllers.Manager(h.last)
	if !ok {
		return evaluation{actual: "it was deleted, but no Flux object had applied it", since: h.since}
	}
	by := r.hub.of(Ref{Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name})
	if slices.Contains(controllers.Managed(by.object), c.Pruned.target()) {
		return evaluation{actual: "it was deleted, but is still in the inventory of " + owner.String(), since: h.since}
	}
	return holds()
}

// corrected reports whether the changed fields have been restored to their former values.
func (r observer) corrected(c *check) evaluation {
	h, j, ok := r.existing(c.Corrected.Object)
	switch {
	case !ok:
		return j
	case c.drift == nil:
		return evaluation{unknown: "it has not been changed"}
	case kube.Older(h.object, c.drift.changed):
		return evaluation{actual: "the change has not been observed", since: h.since}
	}
	left := differing(c.Corrected.Merge, c.drift.before, h.object, "")
	if len(left) > 0 {
		return evaluation{actual: "the change to " + strings.Join(left, ", ") + " was not reverted", since: h.since}
	}
	return holds()
}

// differing returns the fields of a patch whose values differ between two states of an object.
func differing(patch map[string]any, a, b map[string]any, at string) []string {
	var fields []string
	for name, change := range patch {
		path := fieldPath(at, name)
		nested, isObject := change.(map[string]any)
		if isObject && len(nested) > 0 {
			below, _ := a[name].(map[string]any)
			other, _ := b[name].(map[string]any)
			fields = append(fields, differing(nested, below, other, path)...)
			continue
		}
		if !same(a[name], b[name]) {
			fields = append(fields, path)
		}
	}
	slices.Sort(fields)
	return fields
}

func (r observer) event(c *check) evaluation {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	want := c.Event
	var others []string
	for _, e := range r.hub.events {
		about := e.About
		if want.Object.Namespace == "" {
			about.Namespace = ""
		}
		if e.moment <= c.from || about != want.Object.target() {
			continue
		}
		if e.Reason == want.Reason && (want.Type == "" || e.Type == want.Type) && want.Message.matches(e.Message) {
			return holds()
		}
		if other := e.Reason + ": " + redact.Text(e.Message); !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	if r.hub.unheard != nil {
		return evaluation{unknown: r.hub.unheard.Error()}
	}
	return evaluation{actual: among("event", others)}
}

// maxOthers is the maximum number of other events or notifications that a failure shows.
const maxOthers = 5

// among describes the other events or notifications that were received.
func among(what string, others []string) string {
	if len(others) == 0 {
		return "there is none"
	}
	found := "only found " + output.Amount(len(others), "other "+what)
	if len(others) > maxOthers {
		others = others[len(others)-maxOthers:]
		found += ", most recently"
	}
	return found + ": " + strings.Join(others, "; ")
}

func (r observer) notification(c *check) evaluation {
	want := c.Notification
	var others []string
	for _, n := range r.Sink.received(want.Provider, c.from) {
		o := n.InvolvedObject
		if (want.Object == nil || o == want.Object.notified()) && (want.Reason == "" || n.Reason == want.Reason) && want.Message.matches(n.Message) {
			return holds()
		}
		others = append(others, fmt.Sprintf("%s/%s/%s %s: %s", o.Kind, o.Namespace, o.Name, n.Reason, redact.Text(n.Message)))
	}
	return evaluation{actual: among("notification", others)}
}

func (r observer) committed(ctx context.Context, want *FilePattern) evaluation {
	text, found, err := r.Repository.file(ctx, want.File)
	switch {
	case err != nil:
		return evaluation{unknown: err.Error()}
	case !found:
		return evaluation{actual: "the file does not exist"}
	case !want.Content.Match(text):
		return evaluation{actual: "the content does not match"}
	}
	return holds()
}

// maxCauses is the maximum number of root causes in a result.
const maxCauses = 3

// addCauses explains missing objects with the root causes of Flux objects that are not ready, because they may fail to apply the
// objects. A root cause is described once in a run.
func (r observer) addCauses(ctx context.Context, checks []*check) {
	interrupted := ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStepTimeout)
	if interrupted || r.Failed == nil || !slices.ContainsFunc(checks, func(c *check) bool { return c.last.absent }) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	causes := diagnose.Diagnoser{Client: r.Client, Home: r.Home, Now: r.Now()}.Failed(ctx, r.Failed()).Causes
	for _, c := range checks {
		if c.last.absent && len(causes) > 0 {
			c.last.explain(r.describe(causes[:min(len(causes), maxCauses)]))
		}
	}
}

// describe returns root causes as text. Each message is included only once.
func (r observer) describe(causes []diagnose.Cause) string {
	var all []string
	for _, cause := range causes {
		text := cause.Root().Object.String()
		if full := text + ": " + redact.Text(cause.Root().Message); !r.described[full] {
			r.described[full], text = true, full
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// explain adds the objects that are not ready to an evaluation.
func (j *evaluation) explain(text string) {
	if j.unknown != "" {
		j.unknown += "; not ready: " + text
	} else {
		j.actual += "; not ready: " + text
	}
}

func (r observer) why(ctx context.Context, want *Why) evaluation {
	k, _ := want.Object.flux()
	diagnoser := diagnose.Diagnoser{Client: r.Client, Home: r.Home, Now: r.Now()}
	v, err := diagnoser.Object(ctx, k, want.Object.Namespace, want.Object.Name)
	switch {
	case apierrors.IsNotFound(err):
		return evaluation{actual: "it does not exist"}
	case err != nil:
		return evaluation{unknown: err.Error()}
	}
	var roots []string
	for _, c := range v.Causes {
		root := c.Root().Object
		if (want.RootCause == nil || want.RootCause.matches(root)) && want.Message.matches(c.Root().Message) {
			return holds()
		}
		roots = append(roots, fmt.Sprintf("%s: %s", root, redact.Text(c.Root().Message)))
	}
	switch {
	case len(roots) > 0:
		return evaluation{actual: "it is " + strings.Join(roots, "; ")}
	case len(v.Unknown) > 0:
		return evaluation{unknown: strings.Join(v.Unknown, "; ")}
	case len(v.Progress) > 0:
		return evaluation{actual: "it is being reconciled"}
	}
	return evaluation{actual: "it has no problem"}
}

// order reports whether objects became ready in the expected order.
func (r observer) order(c *check) evaluation {
	var last turn
	var before Ref
	for i, ref := range c.Order {
		h, j, ok := r.existing(ref)
		if !ok {
			return evaluation{actual: ref.String() + ": " + j.actual, unknown: j.unknown}
		}
		k, _ := ref.flux()
		// Later reconciliations of a ready object do not matter.
		at := slices.DeleteFunc(slices.Clone(h.readied), func(t turn) bool { return t.moment <= c.from })
		if last := len(h.readied) - 1; len(at) == 0 && last >= 0 && c.from == r.began {
			at = h.readied[last:] // the upgrade's head does not change the object
		}
		switch {
		case !k.IsReady(h.object):
			return evaluation{actual: ref.String() + " is not ready", since: h.since}
		case len(at) == 0:
			return evaluation{actual: ref.String() + " was ready before the step", since: h.since}
		case i > 0 && at[0].before(last):
			return evaluation{actual: fmt.Sprintf("%s became ready before %s", ref, before)}
		case i > 0 && !last.before(at[0]):
			return evaluation{unknown: fmt.Sprintf("cannot determine whether %s or %s became ready first: the watch was interrupted", before, ref)}
		}
		last, before = at[0], ref
	}
	return holds()
}
