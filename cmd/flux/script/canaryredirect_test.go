package script_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
)

// TestCanaryRedirect runs every command against a server that redirects every request to another
// host: no credential follows, in a header or in the address, also none of an exec plugin.
func TestCanaryRedirect(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	leaked := map[string]string{}
	var followed atomic.Int64
	elsewhere := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		followed.Add(1)
		if sent := fmt.Sprint(r.Header, r.URL); strings.Contains(sent, "cnry") || r.Header.Get("Authorization") != "" || r.Header.Get("Private-Token") != "" {
			mu.Lock()
			leaked[r.UserAgent()+" "+r.URL.Path] = sent
			mu.Unlock()
		}
		echo(http.StatusForbidden).ServeHTTP(w, r)
	})
	plain, secure := httptest.NewServer(elsewhere), httptest.NewTLSServer(elsewhere)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	// The certificate of the test server is for 127.0.0.1 and example.com; names of this machine differ.
	redirect := func(to string) http.Handler {
		to = strings.Replace(to, "127.0.0.1", "localhost", 1)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		})
	}
	users := map[string]string{
		"http":  `exec: {apiVersion: client.authentication.k8s.io/v1, command: ` + execPlugin(t) + `, interactiveMode: Never}`,
		"https": `username: me, password: cnry-kube-password`,
	}
	for scheme, target := range map[string]string{"http": plain.URL, "https": secure.URL} {
		server, cluster := httptest.NewServer(redirect(target)), serveTLS(t, redirect(target))
		t.Cleanup(server.Close)
		kubeconfig := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, canaryKubeconfig, cluster.URL, users[scheme]), 0o600); err != nil {
			t.Fatal(err)
		}
		runCanaries(t, scheme, server.URL, kubeconfig)
	}
	if followed.Load() == 0 {
		t.Error("no redirect was followed")
	}
	for what, sent := range leaked {
		t.Errorf("a redirect takes credentials along: %s: %s", what, sent)
	}
}

// runCanaries runs every command with canaries against a server and a cluster, and checks what it prints.
func runCanaries(t *testing.T, how, address, kubeconfig string) {
	t.Helper()
	dir := t.TempDir()
	slots := make(chan struct{}, 4*runtime.NumCPU())
	var wg sync.WaitGroup
	for _, path := range commandPaths(root.NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil)) {
		if path == "flux" {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			args := slices.Concat(strings.Fields(path)[1:], canaryArgs(path, address), []string{"--timeout=3s", "--kubeconfig=" + kubeconfig})
			stdout, stderr := runCanary(t, dir, args)
			if strings.Contains(stdout+stderr, "cnry") {
				t.Errorf("%s: flux %s prints a credential:\n%s%s", how, strings.Join(args, " "), stdout, stderr)
			}
		})
	}
	wg.Wait()
	withoutCanary(t, dir)
}
