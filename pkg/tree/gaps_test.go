package tree_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/tree"
)

// TestForbidden checks that a forbidden list is one gap, and the other objects are in the tree.
func TestForbidden(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.forbidden = []string{"/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/secrets", "/apis/apps/v1/namespaces/shop/deployments"}
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "fleet"), tree.Options{Status: true})
	golden(t, "forbidden.wide", wide(t, got.Root))
	checkGaps(t, got, []string{"deployments.apps shop", "pods shop", "secrets shop"})
}

func TestForbiddenKustomizations(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.forbidden = []string{"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations?limit=10000"}
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "fleet"), tree.Options{Status: true, FluxOnly: true})
	want := `NAME                              |STATUS |RESTARTS|AGE |MESSAGE                             |
Kustomization/flux-system/fleet   |Ready  |        |3d2h|Applied revision: main@sha1:6f9a1b2c|
├── Kustomization/flux-system/shop|Unknown|        |    |it could not be read                |
└── Kustomization/flux-system/gone|Unknown|        |    |it could not be read                |

`
	if diff := cmp.Diff(want, wide(t, got.Root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	checkGaps(t, got, []string{"kustomizations.kustomize.toolkit.fluxcd.io flux-system"})
}

// TestAllNamespacesForbidden checks that if a cluster-wide list is forbidden, each namespace is
// listed.
func TestAllNamespacesForbidden(t *testing.T) {
	t.Parallel()
	s := &server{objects: manyObjects(20, 10)}
	s.forbidden = []string{"/api/v1/pods", "/api/v1/configmaps", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"}
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "all"), tree.Options{Status: true})
	if lines := strings.Count(text(t, got.Root), "\n"); lines != 1+20*4+1 {
		t.Errorf("%d lines", lines)
	}
	checkGaps(t, got, nil)
	if len(s.requests) != 1+4+4*10 {
		t.Errorf("%d requests:\n%s", len(s.requests), strings.Join(s.requests, "\n"))
	}
}

// TestKindNotServed checks that an object of a kind that is not served is missing, and not a gap.
func TestKindNotServed(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.answers = nil
	s.absent = append(s.absent, "/apis/flagger.app")
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "shop"), tree.Options{Status: true})
	var canary *tree.Node
	for _, n := range got.Root.Children {
		if n.Object.Kind == "Canary" {
			canary = n
		}
	}
	if canary == nil || canary.Status != tree.NotFound || canary.Message != "the cluster does not serve this kind" {
		t.Errorf("%+v", canary)
	}
	checkGaps(t, got, nil)
}

// TestOtherCluster checks that objects in another cluster are not read.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	s := &server{waves: []int{1}, objects: parse(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: far, namespace: flux-system}
spec: {kubeConfig: {secretRef: {name: far}}}
status:
  inventory:
    entries:
    - {id: web_web_apps_Deployment, v: v1}
    - {id: flux-system_deeper_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}
`)}
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "far"), tree.Options{Status: true})
	for _, n := range got.Root.Children {
		if n.Status != tree.Unknown || n.Message != "it is in another cluster" || len(n.Children) > 0 {
			t.Errorf("%+v", n)
		}
	}
	if len(got.Root.Children) != 2 {
		t.Errorf("%d children", len(got.Root.Children))
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	s := &server{waves: []int{1}}
	_, err := tree.Build(t.Context(), s.start(t), kindObject(t, "Kustomization", "flux-system", "missing"), tree.Options{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// TestBrokenInventory checks that an invalid inventory is an error that names the object, not a
// partial tree.
func TestBrokenInventory(t *testing.T) {
	t.Parallel()
	s := &server{objects: parse(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: odd, namespace: flux-system}
status: {inventory: {entries: [{id: nonsense, v: v1}]}}
`)}
	_, err := tree.Build(t.Context(), s.start(t), kindObject(t, "Kustomization", "flux-system", "odd"), tree.Options{})
	want := "reading the inventory of Kustomization/flux-system/odd: entry \"nonsense\" does not have the form namespace_name_group_kind"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func checkGaps(t *testing.T, got *tree.Tree, want []string) {
	t.Helper()
	var gaps []string
	for _, g := range got.Gaps {
		gaps = append(gaps, strings.Join(slices.Concat([]string{g.Resource}, g.Namespaces), " "))
		if !apierrors.IsForbidden(g.Err) {
			t.Errorf("%s: %v", g.Resource, g.Err)
		}
	}
	if diff := cmp.Diff(want, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}
