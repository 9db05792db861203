package diagnose

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestHealthOfAnotherCluster diagnoses a failed health check of a Deployment that is ready in this cluster. That resolves
// the failure only if the Kustomization applies to this cluster.
func TestHealthOfAnotherCluster(t *testing.T) {
	t.Parallel()
	const deployment = "/apis/apps/v1/namespaces/apps/deployments"
	for name, c := range map[string]struct {
		spec map[string]any
		want string
		read bool
	}{
		"this cluster":    {map[string]any{}, "resolved", true},
		"another cluster": {map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": "east"}}}, "health", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := cluster(t)
			s.Serve(deployment, "/api/v1/namespaces/apps/events", "/api/v1/namespaces/apps/pods", "/apis/apps/v1/namespaces/apps/replicasets")
			s.Put(deployment, controllers.Object{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "apps", "name": "web", "generation": int64(1)},
				"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
				"status": map[string]any{
					"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
					"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
				},
			})
			app := kustomization("app", "False", "HealthCheckFailed", "health check failed after 1m0s: timeout waiting for: [Deployment/apps/web status: 'InProgress']", c.spec)
			app["status"].(map[string]any)["inventory"] = map[string]any{"entries": []any{map[string]any{"id": "apps_web_apps_Deployment", "v": "v1"}}}
			d := diagnosisOf(Diagnoser{Client: s.Client, Home: "web", Now: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)}, []controllers.Object{app}, nil)
			root := d.evaluation.chain(named("app"))[0]
			d.examine(t.Context(), &root)
			if root.Code != c.want {
				t.Errorf("%+v, want %s", root, c.want)
			}
			if got := slices.ContainsFunc(s.Requests(), func(r string) bool { return r != "GET /api/v1/namespaces/apps/events" }); got != c.read {
				t.Errorf("requests %q", s.Requests())
			}
		})
	}
}
