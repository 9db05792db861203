package faults_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helm"
)

// TestEndlessIndex: the index of a Helm repository, or a chart, that does not end is left at a limit
// that the error names.
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
			_, err := (&helm.Renderer{}).Render(t.Context(), build.Release{Chart: build.Chart{URL: server.URL, Name: "app"}, Name: "r", Namespace: "n"})
			if want := server.URL + endless + ": the file is larger than " + limit; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
