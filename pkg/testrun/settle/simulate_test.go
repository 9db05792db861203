package settle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// TestSimulated checks which suspended objects get a status: not those that their manifests suspend, and not again.
func TestSimulated(t *testing.T) {
	t.Parallel()
	object := func(kind, name string, annotations, spec, status map[string]any) Flux {
		k, _ := controllers.FindKind(kind)
		return Flux{Kind: k, Object: controllers.Object{
			"metadata": map[string]any{"namespace": "apps", "name": name, "generation": int64(2), "annotations": annotations}, "spec": spec, "status": status,
		}}
	}
	policies := map[string]any{policy.SuspendAnnotation: policy.Mark()}
	spec := map[string]any{"suspend": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}}
	unobserved := map[string]any{"observedGeneration": int64(-1)}
	w := &Watcher{Now: func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }, objects: map[controllers.ID]Flux{}}
	for _, f := range []Flux{
		object("GitRepository", "fleet", nil, nil, map[string]any{"artifact": map[string]any{"revision": "main@sha1:2"}}),
		object("Kustomization", "remote", policies, spec, unobserved),
		object("Kustomization", "manifest", nil, spec, unobserved),
		object("Kustomization", "earlier", policies, spec, map[string]any{"observedGeneration": int64(2), "lastAppliedRevision": "main@sha1:1"}),
		object("Kustomization", "set", policies, spec, map[string]any{"observedGeneration": int64(2), "lastAppliedRevision": "main@sha1:2"}),
		object("ImageUpdateAutomation", "images", policies, spec, unobserved),
		object("Alert", "alert", policies, spec, nil),
		object(controllers.InputProvider, "inputs", policies, spec, nil),
	} {
		w.objects[f.ID()] = f
	}
	applied := map[string]any{"observedGeneration": int64(2), "lastAppliedRevision": "main@sha1:2", "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Simulated", "message": "suspended by the sandbox", "observedGeneration": int64(2),
		"lastTransitionTime": "2026-11-01T12:00:00Z",
	}}}
	want := map[string]map[string]any{
		"Kustomization/apps/remote": applied, "Kustomization/apps/earlier": applied, "ImageUpdateAutomation/apps/images": {"observedGeneration": int64(2)},
	}
	got := map[string]map[string]any{}
	for t, status := range w.simulated() {
		got[t.String()] = status
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
