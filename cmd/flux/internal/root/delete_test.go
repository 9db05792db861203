package root

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// TestDeleteReportsRecreation deletes an object that its controller creates again
// under the same name: the deletion succeeds, and a warning names the
// Kustomization that applies it.
func TestDeleteReportsRecreation(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	object := func(uid string) controllers.Object {
		return controllers.Object{
			"metadata": map[string]any{
				"name": "app", "namespace": "flux-system", "uid": uid, "finalizers": []any{"finalizers.fluxcd.io"},
				"labels": map[string]any{"kustomize.toolkit.fluxcd.io/name": "fleet", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			},
		}
	}
	s.Put(kustomizationPath, object("1"))
	s.OnWatch(kustomizationPath, func() {
		s.Take(kustomizationPath, "app")
		s.Put(kustomizationPath, object("2"))
	})
	got := flux(t.Context(), s, "delete", "ks", "app", "--silent", "--wait", "--timeout", "30s")
	want := `► deleting kustomization app in flux-system namespace
◎ waiting until Kustomization flux-system/app is deleted
◎ Kustomization/flux-system/app: its deletion waits for finalizers.fluxcd.io
✔ kustomization app deleted
⚠️ Kustomization/flux-system/fleet applies Kustomization flux-system/app and will recreate it
`
	if got.Code != 0 || got.Err != want {
		t.Errorf("%+v", got)
	}
}

// TestDeleteRequiresConfirmation checks that delete sends no request if it cannot
// prompt for confirmation.
func TestDeleteRequiresConfirmation(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	got := flux(t.Context(), s, "delete", "ks", "app")
	if got.Code != 1 || !strings.Contains(got.Err, "--yes") || len(s.Requests()) != 0 {
		t.Errorf("%+v %v", got, s.Requests())
	}
}
