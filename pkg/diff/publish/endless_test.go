package publish_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
)

// TestEndlessComments checks that reading from a host that returns pages of comments without end
// stops after a bounded number of requests.
func TestEndlessComments(t *testing.T) {
	t.Parallel()
	pages := map[string]func(n int64) (header, body string){
		ci.GitHub:          func(int64) (string, string) { return "", "[" + strings.Repeat("{},", 99) + "{}]" },
		ci.GitLab:          func(n int64) (string, string) { return fmt.Sprint(n + 1), "[{}]" },
		ci.BitbucketCloud:  func(int64) (string, string) { return "", `{"values": [{}], "next": "more"}` },
		ci.BitbucketServer: func(n int64) (string, string) { return "", fmt.Sprintf(`{"values": [], "nextPageStart": %d}`, n) },
	}
	for host, page := range pages {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				header, body := page(requests.Add(1))
				w.Header().Set("X-Next-Page", header)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(server.Close)
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			hosted := githost.Hosted{Hostname: strings.TrimPrefix(server.URL, "https://"), Scheme: "https", CABundle: ca, Token: "s3cret", TokenOrigin: "TOKEN", Owner: "acme", Name: "fleet"}
			_, err := open(t, host, hosted, 1).Comments(t.Context(), "x")
			if err == nil || !strings.Contains(err.Error(), "more than 20000 comments") || requests.Load() != 200 {
				t.Errorf("error %v after %d requests", err, requests.Load())
			}
		})
	}
}
