package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube/fakeapi"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Many named objects are looked at by one list and waited for over one watch;
// one that changes only while it is waited for is seen there, and one that is
// not in the list is asked for by name.
func TestWaitForManyNames(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Serve(strings.Replace(kustomizationPath, "/namespaces/flux-system", "", 1)) // where else the missing one may be
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
		t.Errorf("not a list, a watch, a get of the missing one, and a list of other namespaces and of near names each: %v", requests)
	}
}
