package faults_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/helm"
)

// TestEndlessIndex checks that reading an endless Helm repository index or chart stops at a
// limit, which the error contains.
func TestEndlessIndex(t *testing.T) {
	t.Parallel()
	const index = "apiVersion: v1\nentries:\n  app:\n  - {name: app, version: 1.0.0, urls: [app.tgz]}\n"
	for endless, limit := range map[string]string{"/index.yaml": "64 MiB", "/app.tgz": "128 MiB"} {
		t.Run(endless, func(t *testing.T) {
			// not parallel: each keeps up to the limit in memory
			chunk := []byte(strings.Repeat("# no end\n", 1<<17))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != endless {
					_, _ = w.Write([]byte(index)) // the client may have gone
					return
				}
				for {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			}))
			t.Cleanup(server.Close)
			_, err := (&helm.Renderer{}).Render(t.Context(), charts.Release{Chart: charts.Chart{URL: server.URL, Name: "app"}, Name: "r", Namespace: "n"})
			if want := server.URL + endless + ": the file is larger than " + limit; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestEndlessTags checks that reading the tags of a chart stops at a limit, which the error
// contains.
func TestEndlessTags(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/v2/app/tags/list" {
			return
		}
		_, _ = w.Write([]byte(`{"name":"app","tags":["1.0.0"`)) // the client may have gone
		for {
			if _, err := w.Write([]byte(strings.Repeat(`,"1.0.1"`, 1<<14))); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	chart := charts.Chart{URL: "oci://" + strings.TrimPrefix(server.URL, "http://"), Name: "app", Access: charts.Access{Insecure: true}}
	_, err := (&helm.Renderer{}).Render(t.Context(), charts.Release{Chart: chart, Name: "r", Namespace: "n"})
	if err == nil || !strings.Contains(err.Error(), "the registry sent a tag list larger than 32 MiB") {
		t.Errorf("got %v", err)
	}
}
