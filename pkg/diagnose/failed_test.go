package diagnose

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// kustomization returns a Kustomization with a Ready condition.
func kustomization(name, status, reason, message string, spec map[string]any) controllers.Object {
	return controllers.Object{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": "apps", "name": name, "generation": int64(1)},
		"spec":     spec,
		"status": map[string]any{"observedGeneration": int64(1), "conditions": []any{
			map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message},
		}},
	}
}

// diagnosisOf returns a diagnosis with the objects, some in an earlier version.
func diagnosisOf(listed, known []controllers.Object) *diagnosis {
	s := Doctor{}.newDiagnosis()
	s.view = view{listed: true}
	nameOf := func(o controllers.Object) controllers.ID {
		k, _ := controllers.FindKind(controllers.Path{"kind"}.String(o))
		return k.IDOf(o)
	}
	for _, o := range listed {
		s.objects[nameOf(o)] = o
	}
	for _, o := range known {
		s.now[nameOf(o)] = s.objects[nameOf(o)]
		s.objects[nameOf(o)] = o
	}
	s.graph = tree.NewGraph(slices.Collect(maps.Values(s.objects)), true, func(controllers.ID) bool { return true })
	return s
}

func named(name string) controllers.ID {
	return controllers.FluxID("Kustomization", "apps", name)
}

// roots returns the roots of a verdict with the objects of their cases.
func roots(v Verdict) map[string][]string {
	found := map[string][]string{}
	for _, c := range v.Cases {
		key := c.Root.Object.Name + " " + c.Root.Code
		for _, t := range append([]controllers.ID{c.Object}, c.Also...) {
			found[key] = append(found[key], t.Name)
		}
	}
	return found
}

// TestFailedObjectsShareTheirRoot checks that objects with the same root cause are one case, and a
// failed object is diagnosed in the version in which it failed.
func TestFailedObjectsShareTheirRoot(t *testing.T) {
	t.Parallel()
	on := func(name string) map[string]any {
		return map[string]any{"dependsOn": []any{map[string]any{"name": name}}}
	}
	broken := kustomization("infra", "False", "BuildFailed", "no such file", nil)
	apps := kustomization("apps", "False", "DependencyNotReady", "dependency 'apps/infra' is not ready", on("infra"))
	shop := kustomization("shop", "False", "DependencyNotReady", "dependency 'apps/apps' is not ready", on("apps"))
	again := kustomization("infra", "Unknown", "Progressing", "running again", nil)
	s := diagnosisOf([]controllers.Object{again, apps, shop}, []controllers.Object{broken, apps, shop})
	var v Verdict
	for _, name := range []string{"infra", "apps", "shop"} {
		s.failure(&v, named(name))
	}
	if diff := cmp.Diff(map[string][]string{"infra build": {"infra", "apps", "shop"}}, roots(v)); diff != "" {
		t.Error(diff)
	}
}

func TestFailedObjectThatHasRecovered(t *testing.T) {
	t.Parallel()
	failed := kustomization("apps", "False", "DependencyNotReady", "dependency 'apps/infra' is not ready", nil)
	s := diagnosisOf([]controllers.Object{kustomization("apps", "True", "ReconciliationSucceeded", "applied", nil)}, []controllers.Object{failed})
	var v Verdict
	s.failure(&v, named("apps"))
	if diff := cmp.Diff(map[string][]string{"apps recovered": {"apps"}}, roots(v)); diff != "" {
		t.Error(diff)
	}
}

// TestFailedObjectThatIsReady checks that for an object that is ready from before and has not
// handled the request, the controller may be the cause, but not a suspended or idle dependency.
func TestFailedObjectThatIsReady(t *testing.T) {
	t.Parallel()
	ready := kustomization("apps", "True", "ReconciliationSucceeded", "applied", nil)
	s := diagnosisOf([]controllers.Object{ready}, []controllers.Object{ready})
	var v Verdict
	s.failure(&v, named("apps"))
	if diff := cmp.Diff(map[string][]string{}, roots(v)); diff != "" {
		t.Errorf("want no case: %s", diff)
	}
	s = diagnosisOf([]controllers.Object{ready}, []controllers.Object{ready})
	down := controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "flux-system", Name: "kustomize-controller"}
	s.down["kustomize-controller"] = Finding{Object: down, Code: "controller-down"}
	s.failure(&v, named("apps"))
	if diff := cmp.Diff(map[string][]string{"kustomize-controller controller-down": {"apps"}}, roots(v)); diff != "" {
		t.Error(diff)
	}
}

// TestSuspendedDependencyThatIsReady checks that a running health check does not wait for a
// dependency that is ready and suspended.
func TestSuspendedDependencyThatIsReady(t *testing.T) {
	t.Parallel()
	frozen := kustomization("infra", "True", "ReconciliationSucceeded", "applied", map[string]any{"suspend": true})
	needs := map[string]any{"dependsOn": []any{map[string]any{"name": "infra"}}}
	for want, apps := range map[string]controllers.Object{
		"apps progressing": kustomization("apps", "Unknown", "Progressing", "running health checks", needs),
		"infra suspended":  kustomization("apps", "False", "DependencyNotReady", "dependency 'apps/infra' revision is not up to date", needs),
	} {
		s := diagnosisOf([]controllers.Object{frozen, apps}, nil)
		var v Verdict
		s.failure(&v, named("apps"))
		if diff := cmp.Diff(map[string][]string{want: {"apps"}}, roots(v)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestNotReadyErrorsShareTheirRemedy checks that controllers with the same remedy are one case,
// unless one has printed a log.
func TestNotReadyErrorsShareTheirRemedy(t *testing.T) {
	t.Parallel()
	pull := Cause{Message: "the image cannot be pulled", Remedy: "check --registry"}
	e := &NotReadyError{Namespace: "flux-system", Troubles: []Trouble{
		{"helm-controller", pull}, {"kustomize-controller", Cause{Message: "it ended", Log: []string{"unknown flag"}}}, {"source-controller", pull},
	}}
	want := Verdict{Looked: 3, Cases: []Case{
		single(Finding{Object: atHome("helm-controller"), Code: "controller-down", Message: pull.Message, Remedies: []string{"check --registry"}}),
		single(Finding{
			Object: atHome("kustomize-controller"), Code: "controller-down", Message: "it ended", Details: []string{"| unknown flag"},
			Remedies: []string{"kubectl -n flux-system describe pods -l app=kustomize-controller"},
		}),
	}}
	want.Cases[0].Also = []controllers.ID{atHome("source-controller")}
	if diff := cmp.Diff(want, e.Verdict()); diff != "" {
		t.Error(diff)
	}
}

func atHome(name string) controllers.ID {
	return controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "flux-system", Name: name}
}
