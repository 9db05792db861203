package tree_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/tree"
)

const certificate = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: site, namespace: flux-system}
status: {inventory: {entries: [{id: apps_web_certs.example.com_Certificate, v: v1}]}}
---
apiVersion: certs.example.com/v1
kind: Certificate
metadata: {name: web, namespace: apps, uid: c}
---
apiVersion: certs.example.com/v1
kind: Request
metadata: {name: web-1, namespace: apps, uid: r, ownerReferences: [{apiVersion: certs.example.com/v1, kind: Certificate, name: web, uid: c, controller: true}]}
---
apiVersion: certs.example.com/v1
kind: Request
metadata: {name: other-1, namespace: apps, uid: o, ownerReferences: [{apiVersion: certs.example.com/v1, kind: Certificate, name: other, uid: x, controller: true}]}
---
apiVersion: v1
kind: Pod
metadata: {name: solver, namespace: apps, ownerReferences: [{apiVersion: certs.example.com/v1, kind: Request, name: web-1, uid: r, controller: true}]}
`

// operator serves a group with some kinds. Cluster-scoped kinds, subresources
// and read-only kinds have no owners.
func operator(t *testing.T, more int) *server {
	s := &server{objects: parse(t, certificate), kinds: maps.Clone(builtIn)}
	s.kinds["certs.example.com/v1/certificates"], s.kinds["certs.example.com/v1/requests"] = "Certificate", "Request"
	verbs := []string{"get", "list", "patch"}
	resources := []object{
		{"name": "certificates", "kind": "Certificate", "namespaced": true, "verbs": verbs},
		{"name": "certificates/status", "kind": "Certificate", "namespaced": true, "verbs": verbs},
		{"name": "requests", "kind": "Request", "namespaced": true, "verbs": verbs},
		{"name": "issuers", "kind": "ClusterIssuer", "namespaced": false, "verbs": verbs},
		{"name": "reviews", "kind": "Review", "namespaced": true, "verbs": []string{"create"}},
	}
	for i := range more {
		resources = append(resources, object{"name": fmt.Sprintf("things%d", i), "kind": fmt.Sprintf("Thing%d", i), "namespaced": true, "verbs": verbs})
	}
	s.answers = map[string]any{"/apis/certs.example.com/v1": object{"kind": "APIResourceList", "resources": resources}}
	return s
}

// TestCustomResourcesOfCustomResources checks that the tree has the custom resources that an
// operator creates for a custom resource, with the objects that they own.
func TestCustomResourcesOfCustomResources(t *testing.T) {
	t.Parallel()
	got := build(t, operator(t, 0), kindObject(t, "Kustomization", "flux-system", "site"), tree.Options{})
	want := "Kustomization/flux-system/site\n└── Certificate/apps/web\n    └── Request/apps/web-1\n        └── Pod/apps/solver\n\n"
	if diff := cmp.Diff(want, text(t, got.Root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLargeFamily checks that the other kinds of a large group are not listed.
func TestLargeFamily(t *testing.T) {
	t.Parallel()
	s := operator(t, 20)
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "site"), tree.Options{})
	if diff := cmp.Diff("Kustomization/flux-system/site\n└── Certificate/apps/web\n\n", text(t, got.Root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, r := range s.requests {
		if strings.Contains(r, "requests") || strings.Contains(r, "things") {
			t.Errorf("unneeded request %s", r)
		}
	}
}

// TestInventoryOfCustomResources checks that with InventoryOnly, owned objects are not read.
func TestInventoryOfCustomResources(t *testing.T) {
	t.Parallel()
	s := operator(t, 0)
	s.answers = nil
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "site"), tree.Options{InventoryOnly: true})
	if diff := cmp.Diff("Kustomization/flux-system/site\n└── Certificate/apps/web\n\n", text(t, got.Root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
