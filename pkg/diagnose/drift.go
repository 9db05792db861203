package diagnose

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

const (
	// driftChecks is the maximum number of objects to compare by a dry run.
	// Candidates are objects whose managed fields show a change by another
	// field manager.
	driftChecks = 3
	// driftFields is the maximum number of fields to print for an object,
	// driftValue the maximum length of a value.
	driftFields = 5
	driftValue  = 60
)

// suspect is an object with fields that another field manager has taken over
// from its applier.
type suspect struct {
	target   controllers.ID
	desired  build.Object
	managers []fieldManager
	// fields lists the fields that the applier no longer owns.
	fields [][]string
}

// suspect reports, without a request, whether an object may have drifted: an
// applier owns every field that it has applied until another manager changes
// the field. Fields that only others set, such as the replicas of an
// autoscaler, are not drift.
func (d *desired) suspect(sub subject, t controllers.ID, o controllers.Object) (suspect, bool) {
	if d == nil {
		return suspect{}, false
	}
	applied, ok := d.of(t)
	if _, deleting := deletedAt(o); !ok || deleting || leftAlone(o) || leftAlone(applied.Object) {
		return suspect{}, false
	}
	managers := managersOf(o)
	var owned []map[string]any
	added := false
	for _, m := range managers {
		if m.name == sub.kind.Manager && m.subresource == "" {
			owned = append(owned, m.fields)
		}
		// kustomize-controller also removes fields that kubectl has added.
		added = added || !sub.kind.Release && m.subresource == "" && strings.HasPrefix(m.name, "kubectl")
	}
	if len(managers) == 0 {
		return suspect{}, false // managed fields are not available
	}
	fields := unowned(sent(applied.Object), owned...)
	return suspect{t, applied, managers, fields}, len(fields) > 0 || added
}

// likely sorts suspects by the number of managers that have taken over fields,
// which proves a change.
func likely(suspects []suspect) []suspect {
	slices.SortStableFunc(suspects, func(a, b suspect) int {
		return cmp.Or(cmp.Compare(len(b.changedBy()), len(a.changedBy())), strings.Compare(a.target.String(), b.target.String()))
	})
	return suspects
}

// sent returns an object as the controllers send it, with the stringData of a
// Secret merged into data.
func sent(o controllers.Object) controllers.Object {
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

// leftAlone reports whether a label or annotation excludes an object from drift
// correction.
func leftAlone(o controllers.Object) bool {
	return slices.ContainsFunc(leaveAlone, func(l leftMark) bool { return controllers.HasSetting(o, l.key, l.value) })
}

// changedBy returns the managers that now own one of the fields, newest first.
func (s suspect) changedBy() []fieldManager {
	var managers []fieldManager
	for _, m := range s.managers {
		mine := len(s.fields) == 0 && strings.HasPrefix(m.name, "kubectl")
		for _, field := range s.fields {
			mine = mine || m.owns(field)
		}
		if mine {
			managers = append(managers, m)
		}
	}
	slices.SortStableFunc(managers, func(a, b fieldManager) int { return b.at.Compare(a.at) })
	return managers
}

// drift compares suspects with the desired state by a server-side dry run. It
// returns a finding for each difference, and a description of what could not be
// compared.
func (s *verifier) drift(ctx context.Context, sub subject, d *desired, suspects []suspect) (found []Finding, unknown []string) {
	owner := sub.id()
	suspects = likely(suspects)
	if n := len(suspects) - driftChecks; n > 0 {
		unknown = append(unknown, fmt.Sprintf("%s of %s whose fields were changed by others: flux diff shows them", output.Amount(n, "object"), owner))
		suspects = suspects[:driftChecks]
	}
	if len(suspects) == 0 {
		return nil, unknown
	}
	engine, err := diff.New(s.Client.Config)
	if err != nil {
		return nil, append(unknown, unseen(err)+": drift of "+owner.String())
	}
	k := (&unstructured.Unstructured{Object: sub.object}).DeepCopy()
	unstructured.RemoveNestedField(k.Object, "status", "inventory") // nothing is pruned
	plan := diff.Plan{Owner: k, Build: &build.Result{SecretValues: d.secrets}, Release: d.release}
	for _, suspect := range suspects {
		plan.Build.Objects = append(plan.Build.Objects, suspect.desired)
	}
	result, err := engine.Compare(ctx, plan)
	if err != nil {
		return nil, append(unknown, unseen(err)+": drift of "+owner.String())
	}
	for i, change := range result.Changes[:min(len(result.Changes), len(suspects))] {
		switch {
		case change.Action == diff.Changed, change.Action == diff.Recreated, change.Left():
			found = append(found, s.drifted(sub, suspects[i], change))
		case change.Action == diff.Failed, change.Action == diff.Encrypted:
			unknown = append(unknown, fmt.Sprintf("drift of %s: %s", suspects[i].target, oneLine(strings.Join(append(change.Notes, change.Reason), " "))))
		}
	}
	return found, unknown
}

// drifted returns the finding for an object that differs from the desired
// state.
func (s *verifier) drifted(sub subject, of suspect, change diff.Change) Finding {
	f := Finding{Object: of.target, Code: "drift"}
	f.Message = fmt.Sprintf("%s from what %s has applied", differing(len(change.Fields)), sub.id())
	var names []string
	by := of.changedBy()
	for _, m := range by {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	if len(by) > 0 {
		f.Message += ": changed by " + strings.Join(names, " and ")
		if at := by[0].at; !at.IsZero() { // a change of the subresource scale is recorded without its time
			f.Message += at.UTC().Format(" at " + time.RFC3339)
		}
	}
	secret := of.target.Kind == "Secret"
	for _, field := range change.Fields[:min(len(change.Fields), driftFields)] {
		if secret {
			f.Details = append(f.Details, field.Path)
			continue
		}
		f.Details = append(f.Details, fmt.Sprintf("%s: live %s, applied %s", field.Path, shownValue(field.Before), shownValue(field.After)))
	}
	f.Details = append(f.Details, moreOf(len(change.Fields)-driftFields)...)
	detail, remedies := s.correction(sub)
	f.Details = append(f.Details, detail)
	f.Remedies = append([]string{"see the difference: " + sub.command("diff")}, remedies...)
	f.Remedies = append(f.Remedies, "to keep the change, make it in the source")
	return f
}

func differing(fields int) string {
	if fields == 1 {
		return "1 field differs"
	}
	return fmt.Sprintf("%d fields differ", fields)
}

func moreOf(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("and %d more", n)}
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
	if runes := []rune(oneLine(text)); len(runes) > driftValue {
		return string(runes[:driftValue]) + "…"
	}
	return oneLine(text)
}

// unrendered describes why drift could not be checked. It returns nil if the
// object is being reconciled to another revision.
func unrendered(owner controllers.ID, err error) []string {
	if err == nil || errors.Is(err, errSuperseded) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return []string{"no permission to read the desired state: " + owner.String()}
	}
	return []string{fmt.Sprintf("drift of the objects of %s: %s", owner, oneLine(WithoutFolders(err.Error())))}
}
