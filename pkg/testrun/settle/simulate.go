package settle

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// simulate sets the status of the objects that the policies of the sandbox suspend. Without it, Kustomizations that wait for the
// health of these objects, and objects that depend on them, would never be ready.
func (w *Watcher) simulate(ctx context.Context) error {
	for t, status := range w.simulated() {
		k, _ := t.Flux()
		err := w.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
			return w.Client.PatchStatus(ctx, r, t.Namespace, t.Name, status)
		})
		if err != nil && !apierrors.IsNotFound(err) { // it may have been deleted in the meantime
			return fmt.Errorf("setting the status of %s: %w", t, err)
		}
	}
	return nil
}

// simulated returns the statuses of suspended objects that are not set yet. An ImageUpdateAutomation gets no Ready condition,
// because a test may resume it.
func (w *Watcher) simulated() map[controllers.ID]map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	statuses := map[controllers.ID]map[string]any{}
	for t, f := range w.objects {
		if !policy.Marked(f.Object) || t.Group == controllers.OperatorGroup || !f.Kind.HasConditions() {
			continue
		}
		revision := ""
		if t.Kind == controllers.Kustomization {
			for _, source := range f.Kind.SourceOf(f.Object) {
				revision = controllers.Path{"status.artifact.revision"}.String(w.objects[source].Object)
			}
		}
		generation, _ := controllers.Path{"metadata.generation"}.Lookup(f.Object)
		observed, _ := controllers.Path{"status.observedGeneration"}.Lookup(f.Object)
		if observed == generation && (revision == "" || revision == controllers.Path{"status.lastAppliedRevision"}.String(f.Object)) {
			continue
		}
		status := map[string]any{"observedGeneration": generation}
		if f.Kind.Applies() {
			status["conditions"] = []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Simulated", "message": "suspended by the sandbox", "observedGeneration": generation,
				"lastTransitionTime": w.Now().UTC().Format(time.RFC3339),
			}}
		}
		if revision != "" {
			status["lastAppliedRevision"] = revision
		}
		statuses[t] = status
	}
	return statuses
}
