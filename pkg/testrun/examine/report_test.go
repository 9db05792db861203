package examine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/settle"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// TestConclude checks that messages of one MiB, as those of an API server, are excerpts in a report, also after the results
// of test files are added.
func TestConclude(t *testing.T) {
	t.Parallel()
	large := "rejected: " + strings.Repeat("\x01", 1<<20)
	r := &Report{
		Causes: []Cause{{Message: large, Details: []string{large}}}, Objects: []settle.Status{{Status: settle.NotReady, Message: large}},
		Deprecated: []Deprecation{{Message: large}}, NotTested: []settle.Omission{{Reason: large}}, Unknown: []string{large},
	}
	r.conclude()
	r.AddTests([]assert.Result{{Actual: large}})
	text, err := json.Marshal(r)
	if err != nil || r.Result != settle.NotReady {
		t.Fatal(err, r.Result)
	}
	if want := 7 * 6 * budget.ErrorText; len(text) > want+1000 { // an escaped character has six bytes
		t.Errorf("the report has %d bytes, more than %d", len(text), want)
	}
	if short := budget.Excerpt(large, budget.ErrorText); r.Causes[0].Message != short || r.Tests[0].Actual != short {
		t.Errorf("%.100q is not an excerpt", r.Causes[0].Message)
	}
}

// TestUnread checks that a report which takes too long has what was read, and that another error ends the command.
func TestUnread(t *testing.T) {
	t.Parallel()
	r := &Report{Objects: []settle.Status{{Status: settle.Ready}}}
	if err := r.unread("root causes", fmt.Errorf("listing pods: %w", context.DeadlineExceeded)); err != nil {
		t.Error(err)
	}
	if r.conclude(); r.Result != Undetermined || !slices.Equal(r.Unknown, []string{"timed out reading: root causes"}) {
		t.Errorf("%s: %q", r.Result, r.Unknown)
	}
	failed := errors.New("forbidden")
	if err := r.unread("root causes", failed); !errors.Is(err, failed) {
		t.Error(err)
	}
	// The root causes of a base say nothing about the head.
	r = &Report{Causes: []Cause{{}}, ofBase: true, Unknown: []string{"the head"}}
	if r.conclude(); r.Result != Undetermined {
		t.Error(r.Result)
	}
}

// TestWaiting checks that what waits for a failed object is not a root cause: directly, through others in any order of their
// names, and also if the time was over before it has stopped waiting.
func TestWaiting(t *testing.T) {
	t.Parallel()
	ks, _ := controllers.FindKind("Kustomization")
	object := func(name, status, reason, doing string, spec map[string]any, applies ...string) settle.Flux {
		entries := []any{}
		for _, child := range applies {
			entries = append(entries, map[string]any{"id": "apps_" + child + "_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"})
		}
		conditions := []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": reason}}
		if doing != "" {
			conditions = append(conditions, map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing", "message": doing})
		}
		return settle.Flux{Kind: ks, Object: controllers.Object{
			"metadata": map[string]any{"namespace": "apps", "name": name}, "spec": spec,
			"status": map[string]any{"inventory": map[string]any{"entries": entries}, "conditions": conditions},
		}}
	}
	const checks = "Running health checks for revision main"
	failed, first := object("z", "False", "BuildFailed", "", nil), object("y", "Unknown", "Progressing", "Building manifests", nil)
	onZ := object("c", "False", "DependencyNotReady", "", map[string]any{"dependsOn": []any{map[string]any{"name": "z"}}})
	for name, c := range map[string]struct {
		objects   []settle.Flux
		unsettled bool
		want      string
	}{
		"a parent":                       {[]settle.Flux{failed, object("a", "Unknown", "Progressing", checks, nil, "z")}, false, "a: z"},
		"a parent of a parent":           {[]settle.Flux{failed, object("a", "Unknown", "Progressing", checks, nil, "b"), object("b", "Unknown", "Progressing", checks, nil, "z")}, false, "a: z, b: z"},
		"a parent of a dependent":        {[]settle.Flux{failed, onZ, object("a", "Unknown", "Progressing", checks, nil, "c")}, false, "a: c"},
		"after the timeout":              {[]settle.Flux{failed, object("a", "Unknown", "Progressing", checks, nil, "b"), object("b", "Unknown", "Progressing", checks, nil, "z")}, true, "a: z, b: z"},
		"a dependent after the timeout":  {[]settle.Flux{failed, onZ, object("a", "Unknown", "Progressing", checks, nil, "c")}, true, "a: z, c: z"},
		"not for one that is reconciled": {[]settle.Flux{first, object("a", "Unknown", "Progressing", checks, nil, "y")}, true, ""},
		"not for a cycle":                {[]settle.Flux{object("a", "Unknown", "Progressing", checks, nil, "b"), object("b", "Unknown", "Progressing", checks, nil, "a")}, true, ""},
	} {
		run := &testrun.Run{Flux: map[controllers.ID]settle.Flux{}}
		if c.unsettled {
			run.Unsettled = context.DeadlineExceeded
		}
		for _, f := range c.objects {
			run.Flux[f.ID()] = f
		}
		waiting := examination{run}.waiting()
		var got []string
		for _, t := range slices.SortedFunc(maps.Keys(waiting), controllers.ID.Compare) {
			got = append(got, t.Name+": "+waiting[t].Name)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, ", "), c.want)
		}
	}
}

// TestCommitting checks the remedies for a kind whose CRD is not in the sandbox: those of the rules, as far as they apply.
func TestCommitting(t *testing.T) {
	t.Parallel()
	ks := func(name string) controllers.ID {
		return controllers.ID{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization", Namespace: "flux-system", Name: name}
	}
	r := examination{&testrun.Run{Repository: &sources.Repository{Sync: []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "flux-system", "name": "root"},
	}}}}}}
	const installs = "or " + rules.DependOnCRD
	for _, c := range []struct{ name, remedy, want string }{
		{"root", rules.InstallCRD + "kind A of group b", "commit the CRD of kind A of group b: the sandbox only contains CRDs of Flux and of the repository"},
		{"root", installs + ks("root").String(), "or move the objects of this kind to another Kustomization that depends on the one with the CRD"},
		{"apps", installs + ks("apps").String(), installs + ks("apps").String()},
		{"apps", "set apiVersion of A to b/v1: the cluster serves no other version", "set apiVersion of A to b/v1: the cluster serves no other version"},
	} {
		if got := r.committing(Cause{Object: ks(c.name), Remedies: []string{c.remedy}}); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for ref, want := range map[controllers.ID][2]bool{ // without and with the operator
		{Group: controllers.OperatorGroup, Kind: controllers.FluxInstance}: {true, true},
		{Group: controllers.OperatorGroup, Kind: controllers.ResourceSet}:  {true, false},
		ks("apps"): {false, false},
	} {
		if got := [2]bool{simulated(ref, false) != "", simulated(ref, true) != ""}; got != want {
			t.Errorf("%s: %t", ref, got)
		}
	}
}
