package rollback

import (
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// TestPatch checks that a status update since the plan is not a conflict, but a change of the spec or of the rollback is.
func TestPatch(t *testing.T) {
	t.Parallel()
	k, _ := controllers.FindKind(controllers.HelmRelease)
	object := func(status string, generation int64, annotations map[string]any) controllers.Object {
		return controllers.Object{
			"apiVersion": k.APIVersion(), "kind": k.Kind, "status": map[string]any{"phase": status},
			"metadata": map[string]any{"namespace": "apps", "name": "web", "generation": generation, "annotations": annotations},
		}
	}
	for name, c := range map[string]struct {
		now      controllers.Object
		conflict bool
	}{
		"unchanged":             {nil, false},
		"a new status":          {object("failed", 1, nil), false},
		"another annotation":    {object("ready", 1, map[string]any{controllers.RequestAnnotation: "now"}), false},
		"a new spec":            {object("ready", 2, nil), true},
		"another rollback":      {object("ready", 1, map[string]any{Annotation: "{}"}), true},
		"a new spec and status": {object("failed", 2, nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakeapi.New(t)
			path := "/apis/" + k.APIVersion() + "/namespaces/apps/" + k.Resource
			server.Put(path, object("ready", 1, nil))
			planned, err := server.Client.GetKind(t.Context(), k, "apps", "web")
			if err != nil {
				t.Fatal(err)
			}
			if c.now != nil {
				server.Put(path, c.now)
			}
			p := &Plan{client: server.Client}
			change := map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/patched"}}} // the server patches nothing else
			patched, err := p.patch(t.Context(), objref.Target{Kind: k, Namespace: "apps", Name: "web", Object: planned}, change)
			if (err != nil) != c.conflict {
				t.Fatalf("conflict %t: %v", c.conflict, err)
			}
			if done := len(kube.Finalizers(patched)) == 1; done == c.conflict {
				t.Errorf("conflict %t: the result is %v", c.conflict, patched)
			}
		})
	}
}
