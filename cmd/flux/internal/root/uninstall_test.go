package root

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testflux"
)

func TestUninstall(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t)
	expect(t, flux(t.Context(), s, "uninstall", "--silent"), outcome{Err: testflux.RemovedComponents + `✔ GitRepository/web/app finalizers deleted
► deleting toolkit.fluxcd.io custom resource definitions
✔ CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io deleted
✔ Namespace/flux-system deleted
✔ uninstall finished
`})
	if diff := cmp.Diff([]string{"widgets.example.com"}, s.Names(testflux.CRDPath)); diff != "" {
		t.Errorf("remaining CRDs: %s", diff)
	}
	var changes []string
	for _, r := range s.Requests() {
		if strings.HasPrefix(r, "DELETE ") || strings.HasPrefix(r, "PATCH ") {
			changes = append(changes, r)
		}
	}
	// Requests of the same step are concurrent.
	slices.Sort(changes[3:5])
	want := []string{
		"DELETE " + testflux.DeploymentPath + "/source-controller",
		"DELETE " + testflux.ReplicaSetPath,
		"DELETE " + testflux.PodPath,
		"DELETE /api/v1/namespaces/flux-system/serviceaccounts/source-controller",
		"DELETE /api/v1/namespaces/flux-system/services/source-controller",
		"PATCH " + testflux.WebGitPath + "/app",
		"DELETE " + testflux.CRDPath + "/gitrepositories.source.toolkit.fluxcd.io",
		"DELETE " + testflux.NamespacePath + "/flux-system",
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes -want +got:\n%s", diff)
	}
	expect(t, flux(t.Context(), s, "uninstall", "--silent"),
		outcome{Err: "✔ Flux is not installed in namespace \"flux-system\": nothing to remove\n"})
}

func TestUninstallKeepsNamespace(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t)
	if got := flux(t.Context(), s, "uninstall", "-s", "--keep-namespace"); got.Code != 0 {
		t.Fatal(got)
	}
	if diff := cmp.Diff([]string{"flux-system"}, s.Names(testflux.NamespacePath)); diff != "" {
		t.Error(diff)
	}
}

func TestUninstallShowsThePlanAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t, "example.com/hold")
	expect(t, flux(t.Context(), s, "uninstall"), outcome{1, "", `► these objects will be removed from the cluster; resources that Flux has deployed are kept
  Deployment/flux-system/source-controller
  Service/flux-system/source-controller
  ServiceAccount/flux-system/source-controller
  GitRepository/web/app
  CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io
  Namespace/flux-system and everything in it
⚠️ GitRepository/web/app has finalizers of other controllers, which must remove them: example.com/hold
✗ no terminal to confirm the removal of Flux
  skip the prompt with --yes; nothing was removed
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
⚠️ GitRepository/web/app has finalizers of other controllers, which must remove them: example.com/hold
✔ uninstall finished
`})
	unchanged(t, s)
}

// TestUninstallWithoutCollections checks that uninstall waits for garbage
// collection if the user may not delete ReplicaSets and pods.
func TestUninstallWithoutCollections(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t)
	for _, path := range []string{testflux.ReplicaSetPath, testflux.PodPath} {
		s.Handle("DELETE "+path, func(w http.ResponseWriter, _ *http.Request) {
			fakeapi.Status(w, http.StatusForbidden, "Forbidden", "you may not")
			if path == testflux.PodPath {
				s.Take(testflux.PodPath, "source-controller-abc-x")
			}
		})
	}
	if got := flux(t.Context(), s, "uninstall", "-s"); got.Code != 0 || !strings.Contains(got.Err, "uninstall finished") {
		t.Error(got)
	}
}
