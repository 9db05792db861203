// Package testflux provides a fake API server with a Flux installation for tests.
package testflux

import (
	"net/http"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// API paths in tests.
const (
	CRDPath        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	NamespacePath  = "/api/v1/namespaces"
	DeploymentPath = "/apis/apps/v1/namespaces/flux-system/deployments"
	ReplicaSetPath = "/apis/apps/v1/namespaces/flux-system/replicasets"
	PodPath        = "/api/v1/namespaces/flux-system/pods"
	gitPath        = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
	WebGitPath     = "/apis/source.toolkit.fluxcd.io/v1/namespaces/web/gitrepositories"
	ReviewPath     = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// New returns a fake API server that serves the kinds of an installation.
func New(t *testing.T) *fakeapi.Server {
	t.Helper()
	s := fakeapi.New(t)
	s.Serve(CRDPath, NamespacePath, DeploymentPath, ReplicaSetPath, PodPath)
	ServeVersion(s, "v1.36.3")
	Allow(s, true)
	return s
}

// ServeVersion sets the Kubernetes version of the server.
func ServeVersion(s *fakeapi.Server, version string) {
	s.Handle("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Reply(w, `{"gitVersion":%q}`, version)
	})
}

// Allow sets the response to access reviews.
func Allow(s *fakeapi.Server, allowed bool) {
	s.Handle("POST "+ReviewPath, func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Reply(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":%t}}`, allowed)
	})
}

// Labels returns the labels of the objects of an installation.
func Labels(extra ...string) map[string]any {
	labels := map[string]any{kube.PartOfLabel: "flux", kube.InstanceLabel: "flux-system", kube.VersionLabel: "v2.10.0"}
	for i := 0; i < len(extra); i += 2 {
		labels[extra[i]] = extra[i+1]
	}
	return labels
}

// CRD returns a CustomResourceDefinition with the given stored and served
// versions.
func CRD(kind string, labels map[string]any, stored string, versions ...string) controllers.Object {
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

// Deployment returns the Deployment of a controller.
func Deployment(name, tag string, available int) controllers.Object {
	return controllers.Object{
		"metadata": map[string]any{"name": name, "namespace": "flux-system", "generation": 1, "labels": Labels()},
		"spec": map[string]any{"replicas": 1, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/" + name + ":" + tag}},
		}}},
		"status": map[string]any{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available},
	}
}

// AddSourceKinds adds the CRDs of source-controller to the server.
func AddSourceKinds(s *fakeapi.Server) {
	for _, k := range controllers.Kinds {
		if k.Controller == "source-controller" {
			s.Put(CRDPath, CRD(k.Kind, Labels(), k.Version, k.Version))
		}
	}
}

// Installed returns a server with source-controller and two GitRepositories. holders
// lists further finalizers of one of them.
func Installed(t *testing.T, holders ...any) *fakeapi.Server {
	t.Helper()
	s := New(t)
	named := func(namespace, name string) controllers.Object {
		return controllers.Object{"metadata": map[string]any{"name": name, "namespace": namespace, "labels": Labels()}}
	}
	s.Serve("/apis/networking.k8s.io/v1/namespaces/flux-system/networkpolicies", "/api/v1/namespaces/flux-system/resourcequotas",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
	s.Put("/api/v1/namespaces/flux-system/services", named("flux-system", "source-controller"))
	s.Put("/api/v1/namespaces/flux-system/serviceaccounts", named("flux-system", "source-controller"))
	s.Put(DeploymentPath, Deployment("source-controller", "v1.10.1", 1))
	s.Put(PodPath, controllers.Object{"metadata": map[string]any{"name": "source-controller-abc-x", "namespace": "flux-system", "labels": map[string]any{"app": "source-controller"}}})
	s.Put(NamespacePath, controllers.Object{"metadata": map[string]any{"name": "flux-system", "labels": Labels()}})
	s.Put(CRDPath, CRD("GitRepository", Labels(), "v1", "v1"))
	s.Put(CRDPath, controllers.Object{
		"metadata": map[string]any{"name": "widgets.example.com", "labels": Labels()},
		"spec":     map[string]any{"group": "example.com", "names": map[string]any{"plural": "widgets", "kind": "Widget"}},
	})
	app := controllers.Object{"metadata": map[string]any{
		"name": "app", "namespace": "web", "finalizers": append([]any{"finalizers.fluxcd.io"}, holders...),
	}}
	s.Put(WebGitPath, app)
	s.ServeAs(gitPath, WebGitPath)
	return s
}

// RemovedComponents is the output of uninstall on standard error for the
// components.
const RemovedComponents = `► deleting components in flux-system namespace
✔ Deployment/flux-system/source-controller deleted
◎ waiting for the controllers to stop
✔ Service/flux-system/source-controller deleted
✔ ServiceAccount/flux-system/source-controller deleted
► deleting toolkit.fluxcd.io finalizers in all namespaces
`
