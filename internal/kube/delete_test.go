package kube_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testlimit"
)

const pods = "/api/v1/namespaces/web/pods"

func podResource() kube.Resource {
	return kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
}

func pod(name string, finalizers ...any) controllers.Object {
	return controllers.Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "web", "finalizers": finalizers},
	}
}

func everything(controllers.Object) bool { return true }

func names(objects []controllers.Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, controllers.Name(o))
	}
	return all
}

func TestWaitDeletedWithoutObjects(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("other"))
	left, err := s.Client.WaitDeleted(t.Context(), podResource(), kube.Selection{Namespace: "web"}, func(o controllers.Object) bool { return controllers.Name(o) != "other" })
	if err != nil || left != nil {
		t.Errorf("got %v, %v", left, err)
	}
	if diff := cmp.Diff([]string{"GET " + pods}, s.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestWaitDeletedWatches(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("a"))
	s.Put(pods, pod("b"))
	s.OnWatch(pods, func() {
		s.Take(pods, "b")
		s.Put(pods, pod("a", "changed"))
		s.Take(pods, "a")
	})
	if left, err := s.Client.WaitDeleted(t.Context(), podResource(), kube.Selection{Namespace: "web"}, everything); err != nil || left != nil {
		t.Errorf("got %v, %v", left, err)
	}
	if diff := cmp.Diff([]string{"GET " + pods, "WATCH " + pods}, s.Requests()); diff != "" {
		t.Error(diff)
	}
}

// TestWaitDeletedSurvivesExpiredVersion deletes the objects while the watch is rejected because
// its resourceVersion has expired.
func TestWaitDeletedSurvivesExpiredVersion(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("a"))
	s.Handle("WATCH "+pods, func(w http.ResponseWriter, _ *http.Request) {
		s.Take(pods, "a")
		fakeapi.Status(w, http.StatusGone, "Expired", "too old resource version")
	})
	if left, err := s.Client.WaitDeleted(t.Context(), podResource(), kube.Selection{Namespace: "web"}, everything); err != nil || left != nil {
		t.Errorf("got %v, %v", left, err)
	}
	if diff := cmp.Diff([]string{"GET " + pods, "WATCH " + pods, "GET " + pods}, s.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestWaitDeletedReturnsRemaining(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("b"))
	s.Put(pods, pod("a"))
	ctx := testlimit.NewDeadline(t.Context(), context.DeadlineExceeded)
	s.OnWatch(pods, ctx.Expire)
	left, err := s.Client.WaitDeleted(ctx, podResource(), kube.Selection{Namespace: "web"}, everything)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names(left)); diff != "" {
		t.Error(diff)
	}
}

func TestWaitDeletedReportsNewObjects(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.Put(pods, pod("a"))
	s.OnWatch(pods, func() { s.Put(pods, pod("b")) })
	if _, err := s.Client.WaitDeleted(t.Context(), podResource(), kube.Selection{Namespace: "web"}, everything); !errors.Is(err, kube.ErrAppeared) {
		t.Errorf("got %v", err)
	}
}

func TestRemoveFinalizersKeepsOthers(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	old := pod("a", "finalizers.fluxcd.io", "notfluxcd.io/x")
	s.Put(pods, old)
	// Another client adds a finalizer after the object was read.
	stale := controllers.Object{"metadata": map[string]any{"name": "a", "namespace": "web", "resourceVersion": "1", "finalizers": []any{"finalizers.fluxcd.io"}}}
	if err := s.Client.RemoveFinalizers(t.Context(), podResource(), stale); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"notfluxcd.io/x"}, kube.Finalizers(s.Object(pods, "a"))); diff != "" {
		t.Error(diff)
	}
	want := []string{"PATCH " + pods + "/a", "GET " + pods + "/a", "PATCH " + pods + "/a"}
	if diff := cmp.Diff(want, s.Requests()); diff != "" {
		t.Error(diff)
	}
	if err := s.Client.RemoveFinalizers(t.Context(), podResource(), pod("gone", "finalizers.fluxcd.io")); err != nil {
		t.Errorf("a deleted object: %v", err)
	}
	if err := s.Client.Remove(t.Context(), podResource(), "web", "gone"); err != nil {
		t.Errorf("a deleted object: %v", err)
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	var may []string
	s.Handle("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb, Group, Resource, Namespace string }
			}
		}
		decode(t, r, &review)
		a := review.Spec.ResourceAttributes
		fakeapi.Reply(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`,
			slices.Contains(may, strings.TrimSpace(a.Verb+" "+a.Resource)))
	})
	asked := []kube.Permission{
		{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "web"}, {Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "web"},
		{Verb: "create", Resource: "namespaces"}, {Verb: "delete", Resource: "namespaces"},
	}
	may = []string{"create namespaces"}
	err := s.Client.Access().Check(t.Context(), asked)
	want := `no permission to create, patch deployments.apps in namespace "web"; delete namespaces`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	may = []string{"* *"}
	before := len(s.Requests())
	if err := s.Client.Access().Check(t.Context(), asked); err != nil {
		t.Error(err)
	}
	if n := len(s.Requests()) - before; n != 1 {
		t.Errorf("%d requests of an administrator", n)
	}
}

func TestSupports(t *testing.T) {
	t.Parallel()
	type answer struct {
		constraint string
		supported  bool
	}
	tests := map[string]map[string]answer{
		"2.9.6": {
			"1.33.0": {">=1.33.0-0", true}, "1.33.0-gke.1": {">=1.33.0-0", true}, "1.33.0-alpha.1": {">=1.33.0-0", true},
			"1.36.3+k3s1": {">=1.33.0-0", true}, "2.0.0": {">=1.33.0-0", true}, "1.32.99": {">=1.33.0-0", false}, "1.9.0": {">=1.33.0-0", false},
		},
		"2.10.0": {
			"1.34.9": {">=1.35.2-0", false}, "1.35.1": {">=1.35.2-0", false}, "1.35.2": {">=1.35.2-0", true}, "1.35.2-gke.1": {">=1.35.2-0", true},
			"1.36.0": {">=1.36.1-0", false}, "1.36.1": {">=1.36.1-0", true}, "1.37.0-rc.1": {">=1.37.0-0", true}, "1.38.0": {">=1.35.2-0", true},
		},
	}
	for distribution, versions := range tests {
		d, _ := controllers.FindDistribution(distribution)
		for v, want := range versions {
			constraint, supported, err := kube.Supports(version.MustParseSemantic(v), d.Kubernetes)
			if got := (answer{constraint, supported}); err != nil || got != want {
				t.Errorf("Flux %s on Kubernetes %s: got %v, %v, want %v", distribution, v, got, err, want)
			}
		}
	}
}
