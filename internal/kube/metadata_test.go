package kube_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestMetadataRequestsMetadataOnly checks the request, and reads a response with complete objects.
func TestMetadataRequestsMetadataOnly(t *testing.T) {
	t.Parallel()
	var accepted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted = append(accepted, strings.Split(r.Header.Get("Accept"), ",")[0])
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{"kind":"List","items":[{"metadata":{"name":"a","namespace":"b"},"spec":{"big":1}}],"metadata":{}}`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got []controllers.Object
	r := kube.Resource{Kind: "Secret"}
	r.Version, r.Resource = "v1", "secrets"
	if err := client.Metadata(t.Context(), r, kube.Selection{Name: "a"}, func(o controllers.Object) { got = append(got, o) }); err != nil {
		t.Fatal(err)
	}
	want := []controllers.Object{{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "b"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}, accepted); diff != "" {
		t.Errorf("Accept: -want +got:\n%s", diff)
	}
}
