package testcluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Answer simulates the controller of one object until ctx is canceled: it handles every
// reconciliation request with a Ready condition.
func (c *Cluster) Answer(ctx context.Context, k controllers.Kind, namespace, name string, ready controllers.Condition) error {
	err := c.Client.WithServedVersion(ctx, k, func(r kube.Resource) error { return c.answer(ctx, r, k, namespace, name, ready) })
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("answering for %s %s/%s: %w", k.Kind, namespace, name, err)
}

func (c *Cluster) answer(ctx context.Context, r kube.Resource, k controllers.Kind, namespace, name string, ready controllers.Condition) error {
	return c.Client.Follow(ctx, r, kube.Selection{Namespace: namespace, Name: name}, "", func(e kube.Event) (bool, error) {
		token := controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt")
		handled := controllers.Path{"status.lastHandledReconcileAt"}.String(e.Object)
		if e.Deleted || token == "" || token == handled || k.Suspension.Is(e.Object) {
			return false, nil
		}
		generation, _ := controllers.Path{"metadata.generation"}.Lookup(e.Object)
		status := map[string]any{
			"lastHandledReconcileAt": token,
			"conditions": []any{map[string]any{
				"type": "Ready", "status": ready.Status, "reason": ready.Reason, "message": ready.Message,
				"lastTransitionTime": "2026-11-01T10:00:00Z", "observedGeneration": generation,
			}},
		}
		if k.Family != "artifact" && ready.Status == "True" {
			status["observedGeneration"] = generation
		}
		return false, c.Client.PatchStatus(ctx, r, namespace, name, status)
	})
}
