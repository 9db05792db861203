package diagnose

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
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
func diagnosisOf(d Diagnoser, listed, known []controllers.Object) *diagnosis {
	s := d.begin()
	for _, o := range listed {
		s.snapshot.Objects[controllers.IDOf(o)] = o
	}
	for _, o := range known {
		s.snapshot.Current[controllers.IDOf(o)] = s.snapshot.Objects[controllers.IDOf(o)]
		s.snapshot.Objects[controllers.IDOf(o)] = o
	}
	s.snapshot.Connect()
	return s
}

func named(name string) controllers.ID {
	return controllers.FluxID("Kustomization", "apps", name)
}

// roots returns the roots of a result with their objects.
func roots(r Result) map[string][]string {
	found := map[string][]string{}
	for _, c := range r.Causes {
		key := c.Root().Object.Name + " " + c.Root().Code
		for _, t := range append([]controllers.ID{c.Object}, c.Also...) {
			found[key] = append(found[key], t.Name)
		}
	}
	return found
}

// TestFailedObjectsShareTheirRoot checks that objects with the same root cause are one cause, and a
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
	s := diagnosisOf(Diagnoser{}, []controllers.Object{again, apps, shop}, []controllers.Object{broken, apps, shop})
	var r Result
	for _, name := range []string{"infra", "apps", "shop"} {
		s.evaluation.addFailed(&r, named(name))
	}
	if diff := cmp.Diff(map[string][]string{"infra build": {"infra", "apps", "shop"}}, roots(r)); diff != "" {
		t.Error(diff)
	}
}

func TestFailedObjectThatHasRecovered(t *testing.T) {
	t.Parallel()
	failed := kustomization("apps", "False", "DependencyNotReady", "dependency 'apps/infra' is not ready", nil)
	s := diagnosisOf(Diagnoser{}, []controllers.Object{kustomization("apps", "True", "ReconciliationSucceeded", "applied", nil)}, []controllers.Object{failed})
	var r Result
	s.evaluation.addFailed(&r, named("apps"))
	if diff := cmp.Diff(map[string][]string{"apps recovered": {"apps"}}, roots(r)); diff != "" {
		t.Error(diff)
	}
}

// TestFailedObjectThatIsReady checks that for an object that is ready from before and has not
// handled the request, the controller may be the cause, but not a suspended or idle dependency.
func TestFailedObjectThatIsReady(t *testing.T) {
	t.Parallel()
	ready := kustomization("apps", "True", "ReconciliationSucceeded", "applied", nil)
	s := diagnosisOf(Diagnoser{}, []controllers.Object{ready}, []controllers.Object{ready})
	var r Result
	s.evaluation.addFailed(&r, named("apps"))
	if diff := cmp.Diff(map[string][]string{}, roots(r)); diff != "" {
		t.Errorf("want no cause: %s", diff)
	}
	s = diagnosisOf(Diagnoser{}, []controllers.Object{ready}, []controllers.Object{ready})
	down := controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "flux-system", Name: "kustomize-controller"}
	s.installation.down["kustomize-controller"] = rules.Finding{Object: down, Code: "controller-down"}
	s.evaluation.addFailed(&r, named("apps"))
	if diff := cmp.Diff(map[string][]string{"kustomize-controller controller-down": {"apps"}}, roots(r)); diff != "" {
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
		s := diagnosisOf(Diagnoser{}, []controllers.Object{frozen, apps}, nil)
		var r Result
		s.evaluation.addFailed(&r, named("apps"))
		if diff := cmp.Diff(map[string][]string{want: {"apps"}}, roots(r)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestNotReadyShareTheirRemedy checks that controllers with the same remedy are one cause,
// unless one has printed a log.
func TestNotReadyShareTheirRemedy(t *testing.T) {
	t.Parallel()
	const pull, fix = "the image cannot be pulled", "check --registry"
	e := &rollout.NotReadyError{Namespace: "flux-system", Problems: []rollout.Problem{
		{Name: "helm-controller", Message: pull, Remedy: fix}, {Name: "kustomize-controller", Message: "it ended", Log: []string{"unknown flag"}},
		{Name: "source-controller", Message: pull, Remedy: fix},
	}}
	want := Result{Checked: 3, Causes: []Cause{
		single(rules.Finding{Object: atHome("helm-controller"), Code: "controller-down", Message: pull, Fixes: []string{fix}}),
		single(rules.Finding{
			Object: atHome("kustomize-controller"), Code: "controller-down", Message: "it ended", Details: []string{"| unknown flag"},
			Fixes: []string{"kubectl -n flux-system describe pods -l app=kustomize-controller"},
		}),
	}}
	want.Causes[0].Also = []controllers.ID{atHome("source-controller")}
	if diff := cmp.Diff(want, NotReady(e)); diff != "" {
		t.Error(diff)
	}
}

func atHome(name string) controllers.ID {
	return controllers.ID{Group: "apps", Kind: "Deployment", Namespace: "flux-system", Name: name}
}
