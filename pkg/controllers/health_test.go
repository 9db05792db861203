package controllers_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestHealthChecks expects the objects that a Kustomization waits for, and none if they are in another cluster.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	k, _ := controllers.FindKind("Kustomization")
	check := map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "db", "namespace": "apps"}
	app := func(spec map[string]any) controllers.Object {
		spec["healthChecks"] = []any{check}
		condition := map[string]any{"type": "Ready", "status": "False", "reason": "HealthCheckFailed"}
		return controllers.Object{"metadata": map[string]any{"namespace": "apps", "name": "app"}, "spec": spec, "status": map[string]any{"conditions": []any{condition}}}
	}
	if got := controllers.HealthChecks(k, app(map[string]any{})); len(got) != 1 || got[0] != controllers.FluxID("HelmRelease", "apps", "db") {
		t.Errorf("in this cluster: %v", got)
	}
	if got := controllers.HealthChecks(k, app(map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": "east"}}})); got != nil {
		t.Errorf("in another cluster: %v", got)
	}
}
