package testrun

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestWaves checks how often a failed reconciliation is repeated: once unless the objects that it
// depends on are ready, and more often if its failure is from before they were.
func TestWaves(t *testing.T) {
	t.Parallel()
	condition := func(status, reason string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason}}}
	}
	source := func(status string) controllers.Object {
		s := condition(status, "Test")
		s["artifact"] = map[string]any{"revision": "main@sha1:2"}
		return controllers.Object{"metadata": map[string]any{"namespace": "apps", "name": "fleet"}, "status": s}
	}
	app := func(name, reason, attempted string, dependsOn ...any) controllers.Object {
		s := condition("False", reason)
		s["lastAttemptedRevision"] = attempted
		return controllers.Object{
			"metadata": map[string]any{"namespace": "apps", "name": name}, "status": s,
			"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}, "dependsOn": dependsOn},
		}
	}
	lost := app("a", "ArtifactFailed", "")
	lost["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["message"] = "kustomization path not found: stat /tmp/x: no such file or directory"
	git, _ := controllers.FindKind("GitRepository")
	ks, _ := controllers.FindKind("Kustomization")
	for name, c := range map[string]struct {
		source  string
		object  controllers.Object
		kind    controllers.Kind
		waves   int
		present []controllers.Object
	}{
		"a source depends on nothing":          {"False", source("False"), git, 1, nil},
		"the source failed":                    {"False", app("a", "ArtifactFailed", ""), ks, 1, nil},
		"the build of the revision failed":     {"True", app("a", "BuildFailed", "main@sha1:2"), ks, maxUnchanged, nil},
		"an earlier revision was attempted":    {"True", app("a", "ArtifactFailed", "main@sha1:1"), ks, maxOutdated, nil},
		"nothing was attempted":                {"True", app("a", "ArtifactFailed", ""), ks, maxOutdated, nil},
		"the artifact does not have the path":  {"True", lost, ks, maxMisplaced, nil},
		"the dependency is missing":            {"True", app("a", "DependencyNotReady", "", map[string]any{"name": "b"}), ks, 1, nil},
		"the dependency failed":                {"True", app("a", "DependencyNotReady", "", map[string]any{"name": "b"}), ks, 1, []controllers.Object{app("b", "BuildFailed", "main@sha1:2")}},
		"it waits although nothing is awaited": {"True", app("a", "DependencyNotReady", "main@sha1:2"), ks, maxOutdated, nil},
	} {
		w := &watcher{objects: map[controllers.Target]Flux{}}
		for _, f := range append([]Flux{{Kind: git, Object: source(c.source)}, {Kind: c.kind, Object: c.object}}, present(ks, c.present)...) {
			w.objects[f.Target()] = f
		}
		if got := w.waves(Flux{Kind: c.kind, Object: c.object}); got != c.waves {
			t.Errorf("%s: %d waves, want %d", name, got, c.waves)
		}
	}
}

func present(k controllers.Kind, objects []controllers.Object) []Flux {
	var all []Flux
	for _, o := range objects {
		all = append(all, Flux{Kind: k, Object: o})
	}
	return all
}

// TestAwaits checks which reconciliations are not awaited: those that wait for a stuck object that
// they have applied, also through another one.
func TestAwaits(t *testing.T) {
	t.Parallel()
	ks, _ := controllers.FindKind("Kustomization")
	app := func(name, status, reason string, entries ...any) controllers.Object {
		return controllers.Object{"metadata": map[string]any{"namespace": "apps", "name": name}, "status": map[string]any{
			"inventory": map[string]any{"entries": entries},
			"conditions": []any{
				map[string]any{"type": "Ready", "status": status, "reason": reason},
				map[string]any{"type": "Reconciling", "status": map[string]string{"Unknown": "True"}[status], "reason": reason, "message": reason + " for revision main"},
			},
		}}
	}
	applies := func(name string) any {
		return map[string]any{"id": "apps_" + name + "_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"}
	}
	for name, c := range map[string]struct {
		objects []controllers.Object
		busy    int
	}{
		"it waits for a failed one":            {[]controllers.Object{app("a", "Unknown", checking, applies("b")), app("b", "False", "BuildFailed")}, 0},
		"it waits for one that waits":          {[]controllers.Object{app("a", "Unknown", checking, applies("b")), app("b", "Unknown", checking, applies("c")), app("c", "False", "BuildFailed")}, 0},
		"it waits for one that is reconciled":  {[]controllers.Object{app("a", "Unknown", checking, applies("b")), app("b", "Unknown", checking)}, 2},
		"a failed one that it has not applied": {[]controllers.Object{app("a", "Unknown", checking, applies("c")), app("b", "False", "BuildFailed")}, 1},
		"it detects drift":                     {[]controllers.Object{app("a", "Unknown", "Detecting drift", applies("b")), app("b", "False", "BuildFailed")}, 1},
		"it waits for a ready one":             {[]controllers.Object{app("a", "Unknown", checking, applies("b")), app("b", "True", "ReconciliationSucceeded")}, 1},
	} {
		w := &watcher{objects: map[controllers.Target]Flux{}}
		for _, f := range present(ks, c.objects) {
			w.objects[f.Target()] = f
		}
		if busy, _, _ := w.look(); busy != c.busy {
			t.Errorf("%s: %d are awaited, want %d", name, busy, c.busy)
		}
	}
}
