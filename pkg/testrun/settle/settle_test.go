package settle

import (
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// TestNothing settles at once in a cluster without Flux objects. The race detector checks that a watch that receives
// its list while others start does not write at the same time.
func TestNothing(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	for _, k := range controllers.Kinds {
		s.Serve("/apis/"+k.APIVersion()+"/"+k.Resource, "/apis/"+k.Group+"/"+k.Portable+"/"+k.Resource)
	}
	w := Watcher{Client: s.Client, Now: time.Now}
	objects, err := w.Settle(t.Context(), func(int, int) {})
	if err != nil || len(objects) > 0 {
		t.Error(objects, err)
	}
}

// TestWaves checks how often a failed reconciliation is repeated: once unless the objects that it
// depends on are ready, and until it has another result if they contradict its message.
func TestWaves(t *testing.T) {
	t.Parallel()
	condition := func(status, message string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": "Test", "message": message}}}
	}
	object := func(name, status, message string, spec map[string]any) controllers.Object {
		s := condition(status, message)
		s["artifact"] = map[string]any{"revision": "main@sha1:2"}
		return controllers.Object{"metadata": map[string]any{"namespace": "apps", "name": name}, "status": s, "spec": spec}
	}
	source := func(status string) controllers.Object { return object("fleet", status, "Test", nil) }
	app := func(message string, dependsOn ...any) controllers.Object {
		return object("a", "False", message, map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}, "dependsOn": dependsOn})
	}
	git, _ := controllers.FindKind("GitRepository")
	ks, _ := controllers.FindKind("Kustomization")
	onB := map[string]any{"name": "b"}
	b := func(status string, spec map[string]any) []Flux {
		return present(ks, []controllers.Object{object("b", status, "Test", spec)})
	}
	hr, _ := controllers.FindKind("HelmRelease")
	release := object("a", "False", "HelmChart 'apps/apps-a' is not ready: dependency build error", map[string]any{
		"chart": map[string]any{"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}}},
	})
	chart := func(status string) []Flux {
		k, _ := controllers.FindKind("HelmChart")
		return present(k, []controllers.Object{object("apps-a", status, "Test", nil)})
	}
	for name, c := range map[string]struct {
		source  string
		object  controllers.Object
		kind    controllers.Kind
		waves   int
		present []Flux
	}{
		"a source depends on nothing":           {"False", source("False"), git, 1, nil},
		"the source failed":                     {"False", app("Source artifact not found, retrying in 5s"), ks, 1, nil},
		"the build failed":                      {"True", app("kustomize build failed: Source artifact not found"), ks, maxUnchanged, nil},
		"the source has no artifact":            {"True", app("Source artifact not found, retrying in 5s"), ks, unlimited, nil},
		"the artifact has been replaced":        {"True", app("Source is not ready, artifact not found, retrying in 5s"), ks, unlimited, nil},
		"the source does not exist":             {"True", app(`gitrepositories.source.toolkit.fluxcd.io "fleet" not found`), ks, unlimited, nil},
		"the chart is ready":                    {"True", app("HelmChart 'apps/fleet' is not ready: latest generation of object has not been reconciled"), ks, unlimited, nil},
		"a message about a chart is quoted":     {"True", app("install failed: HelmChart 'apps/fleet' is not ready: latest generation"), ks, maxUnchanged, nil},
		"another object does not exist":         {"True", app(`configmaps "fleet" not found`), ks, maxUnchanged, nil},
		"the artifact cannot be fetched":        {"True", app("failed to download archive: connection refused"), ks, maxUnchanged, nil},
		"the artifact does not have the path":   {"True", app("kustomization path not found: stat /tmp/x: no such file or directory"), ks, maxMisplaced, nil},
		"the chart of a release is ready":       {"True", release, hr, unlimited, chart("True")},
		"the chart of a release failed":         {"True", release, hr, 1, chart("False")},
		"the dependency is missing":             {"True", app("dependency 'apps/b' not found: gone", onB), ks, 1, nil},
		"the dependency failed":                 {"True", app("dependency 'apps/b' is not ready", onB), ks, 1, b("False", nil)},
		"the dependency is ready":               {"True", app("dependency 'apps/b' is not ready", onB), ks, unlimited, b("True", nil)},
		"the dependency has the revision":       {"True", app("dependency 'apps/b' revision is not up to date", onB), ks, unlimited, b("True", nil)},
		"the dependency is suspended":           {"True", app("dependency 'apps/b' revision is not up to date", onB), ks, maxUnchanged, b("True", map[string]any{"suspend": true})},
		"the dependency fails its readyExpr":    {"True", app("dependency 'apps/b' is not ready according to readyExpr eval", onB), ks, maxUnchanged, b("True", nil)},
		"the build failed after the dependency": {"True", app("kustomize build failed", onB), ks, maxUnchanged, b("True", nil)},
	} {
		w := &Watcher{objects: map[controllers.ID]Flux{}}
		for _, f := range append([]Flux{{Kind: git, Object: source(c.source)}, {Kind: c.kind, Object: c.object}}, c.present...) {
			w.objects[f.ID()] = f
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
		w := &Watcher{objects: map[controllers.ID]Flux{}}
		for _, f := range present(ks, c.objects) {
			w.objects[f.ID()] = f
		}
		if busy, _, _ := w.classify(); busy != c.busy {
			t.Errorf("%s: %d are awaited, want %d", name, busy, c.busy)
		}
	}
}
