package kube_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// refusing is an API server that serves only some versions. It records the paths.
type refusing struct {
	versions string            // of the group in discovery
	served   map[string]string // path → response
	asked    []string
}

func (r *refusing) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := strings.TrimPrefix(request.URL.Path, "/apis/source.toolkit.fluxcd.io")
	r.asked = append(r.asked, path)
	body, ok := r.served[path]
	if path == "" {
		body, ok = r.versions, r.versions != ""
	}
	if !ok {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body)) // a disconnected client fails by itself
}

func group(versions ...string) string {
	var list []string
	for _, v := range versions {
		list = append(list, `{"groupVersion":"source.toolkit.fluxcd.io/`+v+`","version":"`+v+`"}`)
	}
	return `{"kind":"APIGroup","versions":[` + strings.Join(list, ",") + `]}`
}

// TestWithServedVersion lists buckets twice on a server without the shipped version: discovery
// happens once.
func TestWithServedVersion(t *testing.T) {
	t.Parallel()
	list := `{"items":[],"metadata":{"resourceVersion":"7"}}`
	for name, c := range map[string]struct {
		server  refusing
		asked   []string
		missing bool
	}{
		"the one before": {
			refusing{versions: group("v1", "v1beta2", "v1beta1"), served: map[string]string{"/v1beta2/buckets": list, "/v1beta1/buckets": list}},
			[]string{"/v1/buckets", "", "/v1beta2/buckets", "/v1beta2/buckets"}, false,
		},
		"a group with a newer version of another kind": {
			refusing{versions: group("v1beta2", "v1beta1"), served: map[string]string{"/v1beta1/buckets": list}},
			[]string{"/v1/buckets", "", "/v1beta2/buckets", "/v1beta1/buckets", "/v1beta1/buckets"}, false,
		},
		"only a version that flux does not know": {
			refusing{versions: group("v3"), served: map[string]string{"/v3/buckets": list}},
			[]string{"/v1/buckets", "", "/v1/buckets"}, true,
		},
		"no such group": {refusing{}, []string{"/v1/buckets", "", "/v1/buckets", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&c.server)
			t.Cleanup(server.Close)
			client, err := kube.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			bucket, _ := controllers.FindKind("Bucket")
			for range 2 {
				err := client.WithServedVersion(t.Context(), bucket, func(r kube.Resource) error {
					_, err := client.List(t.Context(), r, kube.Selection{}, func(controllers.Object) error { return nil })
					return err
				})
				var absent *kube.MissingKindError
				if c.missing != errors.As(err, &absent) || !c.missing && err != nil {
					t.Errorf("listing: %v", err)
				}
			}
			if diff := cmp.Diff(c.asked, c.server.asked); diff != "" {
				t.Errorf("-want +asked:\n%s", diff)
			}
		})
	}
}

// TestDeprecationIsNotReported reads an object in an older version that the server declares
// deprecated: users cannot change the version, which flux has selected.
func TestDeprecationIsNotReported(t *testing.T) {
	t.Parallel()
	r := refusing{versions: group("v1", "v1beta2"), served: map[string]string{"/v1beta2/namespaces/apps/buckets/app": `{"apiVersion":"source.toolkit.fluxcd.io/v1beta2"}`}}
	deprecated := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Warning", `299 - "v1beta2 Bucket is deprecated, upgrade to v1"`)
		r.ServeHTTP(w, request)
	})
	server := httptest.NewServer(deprecated)
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL, WarningHandler: refuseWarnings{t}})
	if err != nil {
		t.Fatal(err)
	}
	bucket, _ := controllers.FindKind("Bucket")
	o, err := client.GetKind(t.Context(), bucket, "apps", "app")
	if got := (controllers.Path{"apiVersion"}).String(o); err != nil || got != "source.toolkit.fluxcd.io/v1beta2" {
		t.Errorf("read at %q: %v", got, err)
	}
}

// refuseWarnings fails the test for each warning that reaches the user.
type refuseWarnings struct{ t *testing.T }

func (r refuseWarnings) HandleWarningHeader(_ int, _, text string) { r.t.Errorf("warned of %s", text) }
