package root

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
)

// TestCompletionTimesOut checks that a completion ends without suggestions if
// the API server does not respond.
func TestCompletionTimesOut(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, users: [{name: a, user: {}}],
clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"get", "kustomizations", "--kubeconfig", kubeconfig, ""}, {"get", "kustomizations", "--kubeconfig", kubeconfig, "-n", ""}} {
		var out, err bytes.Buffer
		a := app.New(strings.NewReader(""), &out, &err, func(string) string { return "" }, time.Now)
		if code := Run(t.Context(), a, append([]string{"__complete"}, words...)); code != 0 || out.String() != ":4\n" {
			t.Errorf("%q exits with %d and prints %q, want 0 and %q; stderr: %s", words, code, out.String(), ":4\n", err.String())
		}
		if len(asked) == 0 {
			t.Errorf("%q sent no request", words)
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}
