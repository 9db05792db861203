package uninstall

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testflux"
	"github.com/fluxkit/flux/test/support/testlimit"
)

func TestSystemNamespaces(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]bool{"default": true, "kube-system": true, "flux-system": false, "kubernetes": false} {
		if got := protected(namespace); got != want {
			t.Errorf("%s: got %t", namespace, got)
		}
	}
	removal := &Plan{Namespace: "kube-system", namespaceObject: controllers.Object{}}
	if removal.Allowed() == nil {
		t.Error("a plan with kube-system in it is allowed")
	}
	if err := (&Plan{Namespace: "kube-system"}).Allowed(); err != nil {
		t.Errorf("a plan that keeps kube-system: %v", err)
	}
}

// TestRemaining ends with a timeout while a finalizer of another controller blocks
// the deletion of an object, and so of its CRD.
func TestRemaining(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t, "example.com/hold")
	held := testflux.CRD("GitRepository", testflux.Labels(), "v1", "v1")
	held["metadata"].(map[string]any)["finalizers"] = []any{"customresourcecleanup.apiextensions.k8s.io"}
	s.Put(testflux.CRDPath, held)
	ctx := testlimit.NewDeadline(t.Context(), context.DeadlineExceeded)
	s.OnWatch(testflux.CRDPath, ctx.Expire)
	plan, err := NewPlan(t.Context(), s.Client, "flux-system", false)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	_, err = Run(ctx, s.Client, plan, ui.New(strings.NewReader(""), &got, func(string) string { return "" }))
	var remaining *RemainingError
	if !errors.As(err, &remaining) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v", err)
	}
	want := strings.TrimSuffix(testflux.RemovedComponents, "\n") + `
⚠️ GitRepository/web/app has finalizers of other controllers, which must remove them: example.com/hold
✔ GitRepository/web/app finalizers deleted
► deleting toolkit.fluxcd.io custom resource definitions
`
	if diff := cmp.Diff([]string{"CustomResourceDefinition/gitrepositories.source.toolkit.fluxcd.io remaining; GitRepository/web/app has the finalizers example.com/hold"}, remaining.Objects); diff != "" {
		t.Errorf("remaining: %s", diff)
	}
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

// TestAppliedAgain deletes the Deployment again that kustomize-controller has applied between the deletion of the pods and
// the list of those that remain.
func TestAppliedAgain(t *testing.T) {
	t.Parallel()
	s := testflux.Installed(t)
	pod := testflux.Labels()
	pod["app"] = "source-controller"
	applied := 0
	s.Handle("DELETE "+testflux.PodPath, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range s.Names(testflux.PodPath) {
			s.Take(testflux.PodPath, name)
		}
		if applied++; applied == 1 {
			s.Put(testflux.DeploymentPath, testflux.Deployment("source-controller", "v1.10.1", 1))
			s.Put(testflux.PodPath, controllers.Object{"metadata": map[string]any{"name": "source-controller-def-y", "namespace": "flux-system", "labels": pod}})
		}
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	})
	plan, err := NewPlan(t.Context(), s.Client, "flux-system", false)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if _, err := Run(t.Context(), s.Client, plan, ui.New(strings.NewReader(""), &got, func(string) string { return "" })); err != nil {
		t.Fatal(err)
	}
	deleted := "✔ Deployment/flux-system/source-controller deleted\n"
	if want := deleted + "◎ waiting for the controllers to stop\n" + deleted; !strings.Contains(got.String(), want) {
		t.Errorf("want %s\ngot %s", want, got.String())
	}
	if left := append(s.Names(testflux.DeploymentPath), s.Names(testflux.PodPath)...); len(left) > 0 {
		t.Errorf("uninstall left %q", left)
	}
}

// TestOperated checks that what flux-operator would install again is not removed: only its own labels on a Deployment count.
func TestOperated(t *testing.T) {
	t.Parallel()
	target := func(kind, key string) Target {
		return Target{Resource: kube.Resource{Kind: kind}, Object: controllers.Object{"metadata": map[string]any{
			"name": "source-controller", "namespace": "flux-system",
			"labels": map[string]any{key + "/name": "flux", key + "/namespace": "flux-system", "app.kubernetes.io/managed-by": "flux-operator"},
		}}}
	}
	for _, other := range []Target{target("Deployment", "kustomize.toolkit.fluxcd.io"), target("ServiceAccount", controllers.OperatorGroup)} {
		if err := (&Plan{Namespace: "flux-system", Components: []Target{other}}).Allowed(); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	err := (&Plan{Namespace: "flux-system", Components: []Target{target("Deployment", controllers.OperatorGroup)}}).Allowed()
	if err == nil || err.Error() != `flux-operator installs Flux in namespace "flux-system" for FluxInstance/flux-system/flux, and would install it again` {
		t.Error(err)
	}
}
