package transport_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/kube/transport"
)

// TestCredentialPluginThatHangs checks that a request ends with its context while
// a credential plugin runs, and that a server that does not respond is not reported as
// an error of the plugin.
func TestCredentialPluginThatHangs(t *testing.T) {
	t.Parallel()
	silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	const credential = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t"}}`
	for name, c := range map[string]struct {
		script string
		plugin bool
	}{
		"hangs":    {"exec sleep 100 2>/dev/null", true},
		"responds": {"echo '" + credential + "'", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := transport.HTTPClient(&rest.Config{
				Host: silent.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
				ExecProvider: &api.ExecConfig{
					APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", c.script}, InteractiveMode: api.NeverExecInteractiveMode,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, silent.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			var plugin *transport.CredentialPluginError
			if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &plugin) != c.plugin {
				t.Errorf("error %v", err)
			}
		})
	}
}
