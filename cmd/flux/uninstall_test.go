package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/fakeapi"
	"github.com/fluxkit/flux/pkg/controllers"
)

// installed is a cluster with a source-controller and two GitRepositories, of
// which others hold one besides Flux, if they are said to.
func installed(t *testing.T, holders ...any) *fakeapi.Server {
	t.Helper()
	s := fake(t)
	named := func(namespace, name string) controllers.Object {
		return controllers.Object{"metadata": map[string]any{"name": name, "namespace": namespace, "labels": partOfFlux()}}
	}
	s.Serve("/apis/networking.k8s.io/v1/namespaces/flux-system/networkpolicies", "/api/v1/namespaces/flux-system/resourcequotas",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", gitPath, webGitPath)
	s.Put("/api/v1/namespaces/flux-system/services", named("flux-system", "source-controller"))
	s.Put("/api/v1/namespaces/flux-system/serviceaccounts", named("flux-system", "source-controller"))
	s.Put(deploymentPath, controllerDeployment("source-controller", "v1.9.5", 1))
	s.Put(podPath, controllers.Object{"metadata": map[string]any{"name": "source-controller-abc-x", "namespace": "flux-system", "labels": map[string]any{"app": "source-controller"}}})
	s.Put(namespacePath, controllers.Object{"metadata": map[string]any{"name": "flux-system", "labels": partOfFlux()}})
	s.Put(crdPath, crd("GitRepository", partOfFlux(), "v1", "v1"))
	s.Put(crdPath, controllers.Object{
		"metadata": map[string]any{"name": "widgets.example.com", "labels": partOfFlux()},
		"spec":     map[string]any{"group": "example.com", "names": map[string]any{"plural": "widgets", "kind": "Widget"}},
	})
	app := controllers.Object{"metadata": map[string]any{
		"name": "app", "namespace": "web", "finalizers": append([]any{"finalizers.fluxcd.io"}, holders...),
	}}
	for _, path := range []string{gitPath, webGitPath} {
		s.Put(path, app)
	}
	return s
}

const removedComponents = `► deleting components in flux-system namespace
✔ Deployment/flux-system/source-controller deleted
◎ waiting for the controllers to end
✔ Service/flux-system/source-controller deleted
✔ ServiceAccount/flux-system/source-controller deleted
► deleting toolkit.fluxcd.io finalizers in all namespaces
`

func TestUninstall(t *testing.T) {
	t.Parallel()
	s := installed(t)
	expect(t, flux(t.Context(), s, "uninstall", "--silent"), outcome{Err: removedComponents + `✔ GitRepository/web/app finalizers deleted
► deleting toolkit.fluxcd.io custom resource definitions
✔ CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io deleted
✔ Namespace/flux-system deleted
✔ uninstall finished
`})
	if diff := cmp.Diff([]string{"widgets.example.com"}, s.Names(crdPath)); diff != "" {
		t.Errorf("definitions that are left: %s", diff)
	}
	var changes []string
	for _, r := range s.Requests() {
		if strings.HasPrefix(r, "DELETE ") || strings.HasPrefix(r, "PATCH ") {
			changes = append(changes, r)
		}
	}
	// Those of one step may come in any order.
	slices.Sort(changes[3:5])
	want := []string{
		"DELETE " + deploymentPath + "/source-controller",
		"DELETE " + replicaSetPath,
		"DELETE " + podPath,
		"DELETE /api/v1/namespaces/flux-system/serviceaccounts/source-controller",
		"DELETE /api/v1/namespaces/flux-system/services/source-controller",
		"PATCH " + webGitPath + "/app",
		"DELETE " + crdPath + "/gitrepositories.source.toolkit.fluxcd.io",
		"DELETE " + namespacePath + "/flux-system",
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes -want +got:\n%s", diff)
	}
	expect(t, flux(t.Context(), s, "uninstall", "--silent"),
		outcome{Err: "✔ Flux is not installed in namespace \"flux-system\": there is nothing to remove\n"})
}

func TestUninstallKeepsNamespace(t *testing.T) {
	t.Parallel()
	s := installed(t)
	if got := flux(t.Context(), s, "uninstall", "-s", "--keep-namespace"); got.Code != 0 {
		t.Fatal(got)
	}
	if diff := cmp.Diff([]string{"flux-system"}, s.Names(namespacePath)); diff != "" {
		t.Error(diff)
	}
}

func TestUninstallShowsThePlanAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := installed(t, "example.com/hold")
	expect(t, flux(t.Context(), s, "uninstall"), outcome{1, "", `► this will be removed from the cluster; what Flux has deployed stays
  Deployment/flux-system/source-controller
  Service/flux-system/source-controller
  ServiceAccount/flux-system/source-controller
  GitRepository/web/app
  CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io
  Namespace/flux-system, with everything in it
⚠️ GitRepository/web/app is held by finalizers of others, who have to remove them: example.com/hold
✗ there is no terminal to ask on whether to remove Flux
  remove it without a question: --silent; nothing was removed
`})
	expect(t, flux(t.Context(), s, "uninstall", "--dry-run"), outcome{Err: `► deleting components in flux-system namespace
✔ Deployment/flux-system/source-controller deleted (dry run)
✔ Service/flux-system/source-controller deleted (dry run)
✔ ServiceAccount/flux-system/source-controller deleted (dry run)
► deleting toolkit.fluxcd.io finalizers in all namespaces
✔ GitRepository/web/app finalizers deleted (dry run)
► deleting toolkit.fluxcd.io custom resource definitions
✔ CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io deleted (dry run)
✔ Namespace/flux-system deleted (dry run)
⚠️ GitRepository/web/app is held by finalizers of others, who have to remove them: example.com/hold
✔ uninstall finished
`})
	unchanged(t, s)
}

func TestUninstallRefusesWhatAClusterNeeds(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]bool{"default": true, "kube-system": true, "flux-system": false, "kubernetes": false} {
		if got := protected(namespace); got != want {
			t.Errorf("%s: got %t", namespace, got)
		}
	}
	plan := &removalPlan{namespace: "kube-system", namespaceObject: controllers.Object{}}
	if plan.allowed() == nil {
		t.Error("a plan with kube-system in it is allowed")
	}
	if err := (&removalPlan{namespace: "kube-system"}).allowed(); err != nil {
		t.Errorf("a plan that keeps kube-system: %v", err)
	}
}

// TestUninstallNamesWhatIsLeft runs out of time while another's finalizer
// holds an object, and with it the definition.
func TestUninstallNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := installed(t, "example.com/hold")
	held := crd("GitRepository", partOfFlux(), "v1", "v1")
	held["metadata"].(map[string]any)["finalizers"] = []any{"customresourcecleanup.apiextensions.k8s.io"}
	s.Put(crdPath, held)
	ctx := fakeapi.NewDeadline(t.Context())
	s.OnWatch(crdPath, ctx.Expire)
	plan, err := newRemovalPlan(t.Context(), s.Client, "flux-system", false)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	a := newApp(strings.NewReader(""), nil, &got, func(string) string { return "" }, nil)
	if err := (&removal{app: a, client: s.Client, plan: plan}).run(ctx); err == nil {
		t.Error("no error with a definition left")
	}
	want := strings.TrimSuffix(removedComponents, "\n") + `
⚠️ GitRepository/web/app is held by finalizers of others, who have to remove them: example.com/hold
✔ GitRepository/web/app finalizers deleted
► deleting toolkit.fluxcd.io custom resource definitions
✗ CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io is left; GitRepository/web/app is held by the finalizers example.com/hold
✗ not everything was gone within --timeout 0s
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/hold"}, kube.Finalizers(s.Object(webGitPath, "app"))); diff != "" {
		t.Errorf("finalizers: %s", diff)
	}
	if diff := cmp.Diff([]string{"flux-system"}, s.Names(namespacePath)); diff != "" {
		t.Errorf("namespaces: %s", diff)
	}
}

// TestUninstallWithoutCollections: who may not delete ReplicaSets and pods
// waits for the garbage collector.
func TestUninstallWithoutCollections(t *testing.T) {
	t.Parallel()
	s := installed(t)
	for _, path := range []string{replicaSetPath, podPath} {
		s.Handle("DELETE "+path, func(w http.ResponseWriter, _ *http.Request) {
			fakeapi.Status(w, http.StatusForbidden, "Forbidden", "you may not")
			if path == podPath {
				s.Take(podPath, "source-controller-abc-x")
			}
		})
	}
	if got := flux(t.Context(), s, "uninstall", "-s"); got.Code != 0 || !strings.Contains(got.Err, "uninstall finished") {
		t.Error(got)
	}
}
