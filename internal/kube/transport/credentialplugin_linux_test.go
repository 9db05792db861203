package transport_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/kube/transport"
)

// TestEndCredentialPlugins ends a plugin for whose credentials several requests wait, in a process of
// its own: it is not started again for the next of them.
func TestEndCredentialPlugins(t *testing.T) {
	t.Parallel()
	if folder := os.Getenv("TEST_CREDENTIAL_PLUGIN"); folder != "" {
		endWhileRequestsWait(t, folder)
		return
	}
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "started"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndCredentialPlugins$") // the test itself
	cmd.Env = append(os.Environ(), "TEST_CREDENTIAL_PLUGIN="+folder)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(filepath.Join(folder, "runs"))
	if err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%v, the plugin ran as %q", err, text)
	}
}

func endWhileRequestsWait(t *testing.T, folder string) {
	t.Helper()
	connection, err := rest.TransportFor(&rest.Config{Host: "https://127.0.0.1:1", ExecProvider: &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "sh", InteractiveMode: api.NeverExecInteractiveMode,
		Args: []string{"-c", `exec 2> /dev/null; cd "$0"; echo $$ >> runs; echo > started; exec sleep 600`, folder},
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
			response, err := connection.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
			ended <- err
		}()
	}
	if _, err := os.ReadFile(filepath.Join(folder, "started")); err != nil { // returns when the plugin runs
		t.Fatal(err)
	}
	transport.EndCredentialPlugins()
	if err := <-ended; err == nil {
		t.Error("a request ended without credentials")
	}
	// The next request would start the plugin now.
	if syscall.ForkLock.TryLock() {
		t.Error("programs can be started after the end of the plugins")
	}
}
