package inventory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
)

const (
	// driftChecks is the maximum number of objects to compare in a dry run. Their managed fields show a change by another field
	// manager.
	driftChecks = 3
	// driftFields is the maximum number of fields to print for an object. driftValue is the maximum length of a value.
	driftFields = 5
	driftValue  = 60
)

// candidate is an object with fields that another field manager has taken over from its applier.
type candidate struct {
	object   controllers.ID
	desired  build.Object
	managers []managedfields.Manager
	// fields lists the fields that the applier no longer owns.
	fields [][]string
}

// inspect keeps a live object as a candidate if its managed fields show that it may have drifted: an applier owns every field
// that it has applied until another manager changes the field. Fields that only other managers set, such as replicas set by an
// autoscaler, are not drift.
func (k *check) inspect(t controllers.ID, o controllers.Object) {
	applied := k.desired.of(t)
	if _, deleting := rules.DeletedAt(o); len(applied) == 0 || deleting || isExcluded(o) || isExcluded(applied[0].Object) {
		return
	}
	c := candidate{object: t, desired: applied[0], managers: managedfields.Of(o)}
	if len(c.managers) == 0 {
		return // managed fields are not available
	}
	var own []managedfields.Manager
	added := false
	for _, m := range c.managers {
		if m.Name == k.subject.Kind.Manager && m.Subresource == "" {
			own = append(own, m)
		}
		// kustomize-controller also removes fields that kubectl has added.
		added = added || !k.subject.Kind.Release && m.Subresource == "" && strings.HasPrefix(m.Name, "kubectl")
	}
	c.fields = managedfields.Unowned(sent(c.desired.Object), own)
	if len(c.fields) > 0 || added {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.changed = append(k.changed, c)
	}
}

// sent returns an object as the controllers send it: without the SOPS metadata, and with the stringData of a Secret merged into
// data.
func sent(o controllers.Object) controllers.Object {
	if _, encrypted := o["sops"]; encrypted {
		o = maps.Clone(o)
		delete(o, "sops")
	}
	plain, ok := o["stringData"].(map[string]any)
	if !ok {
		return o
	}
	data := map[string]any{}
	if encoded, ok := o["data"].(map[string]any); ok {
		maps.Copy(data, encoded)
	}
	maps.Copy(data, plain) // values are not compared, so they are not base64-encoded
	o = maps.Clone(o)
	delete(o, "stringData")
	o["data"] = data
	return o
}

// changedBy returns the managers that now own one of the fields, newest first.
func (c candidate) changedBy() []managedfields.Manager {
	var managers []managedfields.Manager
	for _, m := range c.managers {
		if len(c.fields) == 0 && strings.HasPrefix(m.Name, "kubectl") || slices.ContainsFunc(c.fields, m.Owns) {
			managers = append(managers, m)
		}
	}
	slices.SortStableFunc(managers, func(a, b managedfields.Manager) int { return b.At.Compare(a.At) })
	return managers
}

// drift compares the candidates with the desired state in a server-side dry run, starting with the candidates with the most
// other managers. It returns a finding for each difference.
func (k *check) drift(ctx context.Context) (found []rules.Finding) {
	candidates := slices.SortedStableFunc(slices.Values(k.changed), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(b.changedBy()), len(a.changedBy())), strings.Compare(a.object.String(), b.object.String()))
	})
	if n := len(candidates) - driftChecks; n > 0 {
		k.unknown("%s of %s with fields that other managers changed (to compare all, run flux diff)", output.Amount(n, "object"), k.subject)
		candidates = candidates[:driftChecks]
	}
	if len(candidates) == 0 {
		return nil
	}
	result, err := k.dryRun(ctx, candidates)
	if err != nil {
		k.unknown("%s", observe.Unread("drift of "+k.subject.String(), err))
		return nil
	}
	for i, change := range result.Changes[:min(len(result.Changes), len(candidates))] {
		switch {
		case change.Action == diff.Changed, change.Action == diff.Recreated, change.Left():
			found = append(found, k.drifted(candidates[i], change))
		case change.Action == diff.Failed, change.Action == diff.Encrypted:
			k.unknown("drift of %s: %s", candidates[i].object, failure.OneLine(strings.Join(append(change.Notes, change.Reason), " ")))
		}
	}
	return found
}

func (k *check) dryRun(ctx context.Context, candidates []candidate) (*diff.Result, error) {
	engine, err := dryrun.New(k.checker.Cluster.Client.Config)
	if err != nil {
		return nil, err
	}
	owner := (&unstructured.Unstructured{Object: k.subject.Object}).DeepCopy()
	unstructured.RemoveNestedField(owner.Object, "status", "inventory") // nothing is pruned
	plan := dryrun.Plan{Owner: owner, Build: &build.Result{SecretValues: k.desired.secrets}, Release: k.desired.release}
	for _, c := range candidates {
		plan.Build.Objects = append(plan.Build.Objects, c.desired)
	}
	return engine.Compare(ctx, plan)
}

// drifted returns the finding for an object that differs from the desired state.
func (k *check) drifted(c candidate, change diff.Change) rules.Finding {
	f := rules.Finding{Object: c.object, Code: "drift", Message: fmt.Sprintf("%d fields differ from what %s has applied", len(change.Fields), k.subject)}
	if len(change.Fields) == 1 {
		f.Message = fmt.Sprintf("1 field differs from what %s has applied", k.subject)
	}
	if by := c.changedBy(); len(by) > 0 {
		var names []string
		for _, m := range by {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
		f.Message += ": changed by " + strings.Join(names, " and ")
		if at := by[0].At; !at.IsZero() { // a change of the subresource scale is recorded without its time
			f.Message += at.UTC().Format(" at " + time.RFC3339)
		}
	}
	for _, field := range change.Fields[:min(len(change.Fields), driftFields)] {
		if c.object.Kind == "Secret" {
			f.Details = append(f.Details, field.Path)
			continue
		}
		f.Details = append(f.Details, fmt.Sprintf("%s: live %s, applied %s", field.Path, shownValue(field.Before), shownValue(field.After)))
	}
	detail, fixes := correction(k.subject, k.checker.Now)
	f.Details = append(append(f.Details, andMore(len(change.Fields)-driftFields)...), detail)
	f.Fixes = append(append([]string{"see the difference: " + k.subject.Command("diff")}, fixes...), "to keep the change, make it in the source")
	return f
}

// shownValue formats a value in one line.
func shownValue(v any) string {
	if v == nil {
		return "not set"
	}
	text, isText := v.(string)
	if !isText {
		encoded, err := json.Marshal(v)
		if err != nil {
			return "a value"
		}
		text = string(encoded)
	}
	if runes := []rune(failure.OneLine(text)); len(runes) > driftValue {
		return string(runes[:driftValue]) + "…"
	}
	return failure.OneLine(text)
}
