package rehearse

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
		"the dependency is missing":            {"True", app("a", "DependencyNotReady", "", map[string]any{"name": "b"}), ks, 1, nil},
		"the dependency failed":                {"True", app("a", "DependencyNotReady", "", map[string]any{"name": "b"}), ks, 1, []controllers.Object{app("b", "BuildFailed", "main@sha1:2")}},
		"it waits although nothing is awaited": {"True", app("a", "DependencyNotReady", "main@sha1:2"), ks, maxOutdated, nil},
	} {
		w := &watcher{objects: map[controllers.Target]flux{}}
		for _, f := range append([]flux{{git, source(c.source)}, {c.kind, c.object}}, present(ks, c.present)...) {
			w.objects[f.target()] = f
		}
		if got := w.waves(flux{c.kind, c.object}); got != c.waves {
			t.Errorf("%s: %d waves, want %d", name, got, c.waves)
		}
	}
}

func present(k controllers.Kind, objects []controllers.Object) []flux {
	var all []flux
	for _, o := range objects {
		all = append(all, flux{k, o})
	}
	return all
}
