package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/fakeapi"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	crdPath        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	namespacePath  = "/api/v1/namespaces"
	deploymentPath = "/apis/apps/v1/namespaces/flux-system/deployments"
	replicaSetPath = "/apis/apps/v1/namespaces/flux-system/replicasets"
	podPath        = "/api/v1/namespaces/flux-system/pods"
	gitPath        = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
	webGitPath     = "/apis/source.toolkit.fluxcd.io/v1/namespaces/web/gitrepositories"
	reviewPath     = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// answer is what a command line brings about.
type outcome struct {
	Code     int
	Out, Err string
}

// flux runs a command line against a fake API.
func flux(ctx context.Context, s *fakeapi.Server, args ...string) outcome {
	var out, err bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &err, func(string) string { return "" }, func() time.Time { return time.Unix(0, 0) })
	a.cluster = func() (*kube.Client, error) { return s.Client, nil }
	code := a.run(ctx, args)
	return outcome{code, out.String(), err.String()}
}

func expect(t *testing.T, got, want outcome) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func fake(t *testing.T) *fakeapi.Server {
	t.Helper()
	s := fakeapi.New(t)
	s.Serve(crdPath, namespacePath, deploymentPath, replicaSetPath, podPath)
	serveVersion(s, "v1.36.3")
	allow(s, true)
	return s
}

func serveVersion(s *fakeapi.Server, version string) {
	s.Handle("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Reply(w, `{"gitVersion":%q}`, version)
	})
}

// allow answers access reviews: everything, or nothing.
func allow(s *fakeapi.Server, allowed bool) {
	s.Handle("POST "+reviewPath, func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Reply(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":%t}}`, allowed)
	})
}

func partOfFlux(extra ...string) map[string]any {
	labels := map[string]any{kube.PartOfLabel: "flux", kube.InstanceLabel: "flux-system", kube.VersionLabel: "v2.9.5"}
	for i := 0; i < len(extra); i += 2 {
		labels[extra[i]] = extra[i+1]
	}
	return labels
}

// crd is a definition as the server shows it, its versions served as told.
func crd(kind string, labels map[string]any, stored string, versions ...string) controllers.Object {
	k, _ := controllers.FindKind(kind)
	labels["app.kubernetes.io/component"] = k.Controller
	served := []any{}
	for _, v := range versions {
		served = append(served, map[string]any{"name": v, "served": true, "storage": v == k.Version})
	}
	return controllers.Object{
		"metadata": map[string]any{"name": k.CRD(), "labels": labels},
		"spec":     map[string]any{"group": k.Group, "names": map[string]any{"plural": k.Resource, "kind": k.Kind}, "versions": served},
		"status": map[string]any{
			"storedVersions": []any{stored},
			"conditions":     []any{map[string]any{"type": "Established", "status": "True"}},
		},
	}
}

func controllerDeployment(name, tag string, available int) controllers.Object {
	return controllers.Object{
		"metadata": map[string]any{"name": name, "namespace": "flux-system", "generation": 1, "labels": partOfFlux()},
		"spec": map[string]any{"replicas": 1, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/" + name + ":" + tag}},
		}}},
		"status": map[string]any{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available},
	}
}

// sourceKinds puts the definitions of the source-controller on the server.
func sourceKinds(s *fakeapi.Server) {
	for _, k := range controllers.Kinds {
		if k.Controller == "source-controller" {
			s.Put(crdPath, crd(k.Kind, partOfFlux(), k.Version, k.Version))
		}
	}
}
