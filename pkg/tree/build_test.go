package tree_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// flagger is a custom resource whose plural and version require discovery.
func flagger() (kinds map[string]string, answers map[string]any, absent []string) {
	verbs := []string{"get", "list", "patch"}
	kinds = maps.Clone(builtIn)
	kinds["flagger.app/v1beta1/canarii"] = "Canary"
	answers = map[string]any{
		"/apis/flagger.app": object{"kind": "APIGroup", "name": "flagger.app", "preferredVersion": object{"groupVersion": "flagger.app/v1beta1", "version": "v1beta1"}},
		"/apis/flagger.app/v1beta1": object{"kind": "APIResourceList", "resources": []object{
			{"name": "canarii/status", "kind": "Canary", "namespaced": true, "verbs": verbs}, {"name": "canarii", "kind": "Canary", "namespaced": true, "verbs": verbs},
		}},
	}
	return kinds, answers, []string{"/apis/flagger.app/v1alpha1", "/apis/flagger.app/v1alpha1/namespaces/shop/canaries"}
}

func shop(t *testing.T) *server {
	s := &server{objects: load(t, "testdata/shop.yaml")}
	s.kinds, s.answers, s.absent = flagger()
	return s
}

func build(t *testing.T, s *server, root controllers.ID, options tree.Options) *tree.Tree {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	got, err := tree.Build(ctx, s.start(t), root, options)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wide(t *testing.T, root *tree.Node) string {
	t.Helper()
	var out bytes.Buffer
	style := tree.Style{Now: time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC), Separator: "|"}
	if err := tree.Wide(&out, root, style); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func text(t *testing.T, root *tree.Node) string {
	t.Helper()
	var out bytes.Buffer
	if err := tree.Text(&out, root); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// golden compares with a file in testdata, and writes it if UPDATE is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

func TestTreeWithStatus(t *testing.T) {
	t.Parallel()
	got := build(t, shop(t), kindObject(t, "Kustomization", "flux-system", "fleet"), tree.Options{Status: true})
	golden(t, "shop.wide", wide(t, got.Root))
	if len(got.Gaps) > 0 {
		t.Errorf("gaps: %+v", got.Gaps)
	}
}

// TestTextReadsLess checks that without status only owners and owned objects are read, so that
// piped output needs fewer requests.
func TestTextReadsLess(t *testing.T) {
	t.Parallel()
	s := shop(t)
	got := build(t, s, kindObject(t, "Kustomization", "flux-system", "fleet"), tree.Options{All: true})
	golden(t, "shop.text", text(t, got.Root))
	for _, r := range s.requests {
		for _, resource := range []string{"configmaps", "secrets", "clusterroles", "/v1/namespaces?"} {
			if strings.Contains(r, resource) {
				t.Errorf("unneeded request %s", r)
			}
		}
	}
}

func TestEncodedWithStatus(t *testing.T) {
	t.Parallel()
	got := build(t, shop(t), kindObject(t, "HelmRelease", "shop", "payments"), tree.Options{Status: true})
	var out bytes.Buffer
	if err := tree.JSON(&out, got.Root); err != nil {
		t.Fatal(err)
	}
	golden(t, "payments.json", out.String())
}

// TestSequentialRequests checks that at most five requests are sequential at any depth: the root,
// the Kustomizations in its namespace, in the next namespace and in all namespaces, and the
// objects.
func TestSequentialRequests(t *testing.T) {
	t.Parallel()
	chain := []string{"a", "b", "c", "d", "e"}
	var manifests []string
	for i, namespace := range chain {
		next := "e_web_apps_Deployment"
		if i+1 < len(chain) {
			next = chain[i+1] + "_next_kustomize.toolkit.fluxcd.io_Kustomization"
		}
		manifests = append(manifests, fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"+
			"metadata: {name: next, namespace: %s}\nstatus: {inventory: {entries: [{id: %s, v: v1}]}}", namespace, next))
	}
	s := &server{objects: parse(t, strings.Join(manifests, "\n---\n")), waves: []int{1, 1, 1, 1, 3}}
	got := build(t, s, kindObject(t, "Kustomization", "a", "next"), tree.Options{})
	want := "Kustomization/a/next\n└── Kustomization/b/next\n    └── Kustomization/c/next\n        └── Kustomization/d/next\n" +
		"            └── Kustomization/e/next\n                └── Deployment/e/web\n\n"
	if diff := cmp.Diff(want, text(t, got.Root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	requests := []string{
		"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/a/kustomizations?fieldSelector=metadata.name%3Dnext&limit=10000",
		"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/b/kustomizations?limit=10000",
		"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/c/kustomizations?limit=10000",
		"/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations?limit=10000",
	}
	if diff := cmp.Diff(requests, s.requests[:4]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestManyObjects checks that the number of requests depends on kinds and namespaces, not on
// objects.
func TestManyObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespaces int
		waves      []int
	}{
		"in one namespace":   {1, []int{1, 4}},
		"in many namespaces": {50, []int{1, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{objects: manyObjects(500, c.namespaces), waves: c.waves}
			got := build(t, s, kindObject(t, "Kustomization", "flux-system", "all"), tree.Options{Status: true})
			if lines := strings.Count(text(t, got.Root), "\n"); lines != 1+500*4+1 {
				t.Errorf("%d lines", lines)
			}
			if strings.Contains(wide(t, got.Root), "NotFound") {
				t.Error("objects were not found")
			}
		})
	}
}

// manyObjects returns a Kustomization with n Deployments and ConfigMaps,
// each Deployment with a ReplicaSet and a Pod.
func manyObjects(count, namespaces int) []object {
	var all []object
	var entries []any
	add := func(apiVersion, kind, name, namespace string, owner object) {
		metadata := object{"name": name, "namespace": namespace, "uid": kind + name}
		if owner != nil {
			metadata["ownerReferences"] = []any{object{
				"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta(owner, "name"), "uid": meta(owner, "uid"), "controller": true,
			}}
		}
		all = append(all, object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	}
	for i := range count {
		name, namespace := fmt.Sprintf("app-%d", i), fmt.Sprintf("ns-%d", i%namespaces)
		entries = append(entries, object{"id": namespace + "_" + name + "_apps_Deployment", "v": "v1"}, object{"id": namespace + "_" + name + "__ConfigMap", "v": "v1"})
		add("v1", "ConfigMap", name, namespace, nil)
		add("apps/v1", "Deployment", name, namespace, nil)
		add("apps/v1", "ReplicaSet", name, namespace, all[len(all)-1])
		add("v1", "Pod", name, namespace, all[len(all)-1])
	}
	root := object{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": object{"name": "all", "namespace": "flux-system"},
		"status": object{"inventory": object{"entries": entries}},
	}
	return append(all, root)
}
