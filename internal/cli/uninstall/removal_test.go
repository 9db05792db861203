package uninstall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/fakeapi"
	"github.com/fluxkit/flux/internal/testflux"
	"github.com/fluxkit/flux/pkg/controllers"
)

func TestUninstallRefusesWhatAClusterNeeds(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]bool{"default": true, "kube-system": true, "flux-system": false, "kubernetes": false} {
		if got := protected(namespace); got != want {
			t.Errorf("%s: got %t", namespace, got)
		}
	}
	removal := &plan{namespace: "kube-system", namespaceObject: controllers.Object{}}
	if removal.allowed() == nil {
		t.Error("a plan with kube-system in it is allowed")
	}
	if err := (&plan{namespace: "kube-system"}).allowed(); err != nil {
		t.Errorf("a plan that keeps kube-system: %v", err)
	}
}

// TestUninstallNamesWhatIsLeft runs out of time while another's finalizer
// holds an object, and with it the definition.
func TestUninstallNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t, "example.com/hold")
	held := testflux.CRD("GitRepository", testflux.Labels(), "v1", "v1")
	held["metadata"].(map[string]any)["finalizers"] = []any{"customresourcecleanup.apiextensions.k8s.io"}
	s.Put(testflux.CRDPath, held)
	ctx := fakeapi.NewDeadline(t.Context())
	s.OnWatch(testflux.CRDPath, ctx.Expire)
	plan, err := newPlan(t.Context(), s.Client, "flux-system", false)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	a := app.New(strings.NewReader(""), nil, &got, func(string) string { return "" }, nil)
	if err := (&removal{app: a, client: s.Client, plan: plan}).run(ctx); err == nil {
		t.Error("no error with a definition left")
	}
	want := strings.TrimSuffix(testflux.RemovedComponents, "\n") + `
⚠️ GitRepository/web/app has finalizers of other controllers, which must remove them: example.com/hold
✔ GitRepository/web/app finalizers deleted
► deleting toolkit.fluxcd.io custom resource definitions
✗ CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io remaining; GitRepository/web/app has the finalizers example.com/hold
✗ timed out after 0s waiting for deletions
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/hold"}, kube.Finalizers(s.Object(testflux.WebGitPath, "app"))); diff != "" {
		t.Errorf("finalizers: %s", diff)
	}
	if diff := cmp.Diff([]string{"flux-system"}, s.Names(testflux.NamespacePath)); diff != "" {
		t.Errorf("namespaces: %s", diff)
	}
}
