package kube_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/kube"
)

// TestEndCredentialPlugins ends a plugin for whose credentials several requests wait, in a process of
// its own: it is not started again for the next of them.
func TestEndCredentialPlugins(t *testing.T) {
	t.Parallel()
	if runs := os.Getenv("TEST_CREDENTIAL_PLUGIN_RUNS"); runs != "" {
		endWhileRequestsWait(t, runs)
		return
	}
	runs := filepath.Join(t.TempDir(), "runs")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndCredentialPlugins$") //nolint:gosec // the test itself
	cmd.Env = append(os.Environ(), "TEST_CREDENTIAL_PLUGIN_RUNS="+runs)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(runs)
	if err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%v, the plugin ran as %q", err, text)
	}
}

func endWhileRequestsWait(t *testing.T, runs string) {
	t.Helper()
	transport, err := rest.TransportFor(&rest.Config{Host: "https://127.0.0.1:1", ExecProvider: &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "sh", InteractiveMode: api.NeverExecInteractiveMode,
		Args: []string{"-c", `echo $$ >> "$0"; exec sleep 600 > /dev/null 2>&1`, runs},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	for range 5 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			response, err := transport.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
			ended <- err
		}()
	}
	for text := []byte(nil); len(text) == 0; text, _ = os.ReadFile(runs) {
		time.Sleep(time.Millisecond) // until the plugin runs
	}
	kube.EndCredentialPlugins()
	if err := <-ended; err == nil {
		t.Error("a request ended without credentials")
	}
	// Without the end of the first plugin, the next request would start it now.
	select {
	case err := <-ended:
		t.Errorf("another request ended: %v", err)
	case <-time.After(time.Second):
	}
}
