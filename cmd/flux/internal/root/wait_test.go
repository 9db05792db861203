package root

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// TestWaitForManyNames checks that many named objects share one list and one
// watch, and that an object that is not in the list is read by name.
func TestWaitForManyNames(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Serve(strings.Replace(kustomizationPath, "/namespaces/flux-system", "", 1)) // for the hint about the missing object
	put := func(name, status string) {
		s.Put(kustomizationPath, controllers.Object{
			"metadata": map[string]any{"name": name, "namespace": "flux-system", "generation": 1},
			"status": map[string]any{"observedGeneration": 1, "conditions": []any{
				map[string]any{"type": "Ready", "status": status, "reason": "Test", "message": "x"},
			}},
		})
	}
	names := []string{"late", "missing"}
	put("late", "Unknown")
	for i := range reconcile.ShareFrom {
		name := fmt.Sprintf("app-%02d", i)
		names = append(names, name)
		put(name, "True")
	}
	s.OnWatch(kustomizationPath, func() { put("late", "True") })
	got := flux(t.Context(), s, append([]string{"wait", "ks", "--timeout", "30s"}, names...)...)
	if got.Code != 1 || strings.Count(got.Err, "✔") != reconcile.ShareFrom+1 || !strings.Contains(got.Err, "✔ Kustomization/flux-system/late is ready") ||
		!strings.Contains(got.Err, "✗ Kustomization object 'missing' not found") {
		t.Errorf("%+v", got)
	}
	if requests := s.Requests(); len(requests) != 5 {
		t.Errorf("want a list, a watch, a get of the missing object, and two lists for its hint, got: %v", requests)
	}
}
