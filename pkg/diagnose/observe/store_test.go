package observe

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// well returns a healthy object of a kind with the fields and unneeded content.
func well(kind string, spec, status map[string]any) controllers.Object {
	k, _ := controllers.FindKind(kind)
	status = maps.Clone(status)
	status["observedGeneration"], status["inventory"] = int64(2), map[string]any{"entries": []any{map[string]any{"id": "a_b_c_D", "v": "v1"}}}
	status["conditions"] = []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "done", "observedGeneration": int64(2)}}
	return controllers.Object{
		"apiVersion": k.APIVersion(), "kind": kind, "spec": spec, "status": status,
		"metadata": map[string]any{"name": "app", "namespace": "apps", "generation": int64(2), "labels": map[string]any{"a": "b"}},
	}
}

// TestStoreKeepsRequiredFields checks that a stored object has all fields that the diagnosis of
// other objects reads.
func TestStoreKeepsRequiredFields(t *testing.T) {
	t.Parallel()
	const revision = "main@sha1:2222222222222222222222222222222222222222"
	ref := func(kind string) map[string]any {
		return map[string]any{"kind": kind, "name": "fleet", "namespace": "other"}
	}
	for _, o := range []controllers.Object{
		well("Kustomization", map[string]any{"sourceRef": ref("GitRepository"), "dependsOn": []any{map[string]any{"name": "infra"}}, "path": "./"},
			map[string]any{"lastAttemptedRevision": revision, "lastAppliedRevision": revision}),
		well("HelmRelease", map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": "web", "sourceRef": ref("HelmRepository")}}, "values": map[string]any{"a": "b"}},
			map[string]any{"helmChart": "other/apps-app", "lastAttemptedRevision": "1.2.3"}),
		well("HelmRelease", map[string]any{"chartRef": ref("OCIRepository")}, map[string]any{"lastAttemptedRevisionDigest": "sha256:22"}),
		well("HelmChart", map[string]any{"sourceRef": ref("HelmRepository")}, map[string]any{"observedSourceArtifactRevision": "sha256:11"}),
		well("GitRepository", map[string]any{"url": "https://example.com"}, map[string]any{"artifact": map[string]any{"revision": revision, "lastUpdateTime": "2026-11-01T10:00:00Z", "size": int64(3)}}),
		well("HelmRepository", map[string]any{"type": "oci"}, map[string]any{}),
	} {
		k, _ := controllers.FindKind(o["kind"].(string))
		s := store{text: map[controllers.ID][]byte{}}
		if left := s.keep(k, o); left != nil {
			t.Errorf("%s is not kept: %v", k.Kind, left)
		}
		kept := s.get(k.IDOf(o))
		answers := func(o controllers.Object) map[string]any {
			all := map[string]any{
				"healthy": isHealthy(k, o), "ready": k.Ready(o).Status, "awaited": tree.Awaited(k, o),
				"fetched": (controllers.Path{"status.artifact.revision", "status.artifact.lastUpdateTime"}).String(o),
			}
			for _, up := range tree.Awaited(k, o) {
				source, _ := controllers.FindKind(up.Kind)
				for _, tried := range []string{revision, "1.2.3", "sha256:11", "latest@sha256:22", "newer"} {
					all["tried "+up.Kind+" "+tried] = k.Tried(o, source, tried)
				}
			}
			return all
		}
		if diff := cmp.Diff(answers(o), answers(kept)); diff != "" {
			t.Errorf("%s: -whole +kept:\n%s", k.Kind, diff)
		}
	}
}

// TestStoreKeepsProblemsComplete checks that an object that may have a problem is not reduced.
func TestStoreKeepsProblemsComplete(t *testing.T) {
	t.Parallel()
	k, _ := controllers.FindKind("Kustomization")
	change := func(o controllers.Object, part, field string, value any) controllers.Object {
		o[part].(map[string]any)[field] = value
		return o
	}
	healthyOne := func() controllers.Object { return well("Kustomization", map[string]any{}, map[string]any{}) }
	for name, o := range map[string]controllers.Object{
		"suspended": change(healthyOne(), "spec", "suspend", true),
		"deleting":  change(healthyOne(), "metadata", "deletionTimestamp", "2026-11-01T10:00:00Z"),
		"changed":   change(healthyOne(), "metadata", "generation", int64(3)),
		"silent":    change(healthyOne(), "status", "conditions", []any{}),
	} {
		s := store{text: map[controllers.ID][]byte{}}
		if left := s.keep(k, o); left == nil || left["status"].(map[string]any)["inventory"] == nil {
			t.Errorf("%s: it is reduced to %v", name, left)
		}
	}
}
