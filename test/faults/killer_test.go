package faults_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testgit"
	"github.com/fluxkit/flux/test/support/testgithost"
	"github.com/fluxkit/flux/test/support/testproxy"
)

// killer intercepts all changes that a flux process makes. It counts the changes and
// kills the process at one of them: before the server receives the request, or after
// the server has handled it and before the response is read.
type killer struct {
	mu   sync.Mutex
	seen []string
	// at is the number of the change at which the process is killed, 0 for none; late kills it
	// after the server has handled the change.
	at   int
	late bool
	// kill kills the process and waits for its exit.
	kill func()
}

// arrive counts a change.
func (k *killer) arrive(what string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = append(k.seen, what)
	return len(k.seen)
}

// strikes kills the process at the selected change.
func (k *killer) strikes(number int, late bool) bool {
	k.mu.Lock()
	hit := number == k.at && late == k.late
	k.mu.Unlock()
	if hit {
		k.kill()
	}
	return hit
}

func (k *killer) counted() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.seen...)
}

// fault returns a fault of the Git host that counts its changes.
func (k *killer) fault() testgithost.Fault {
	var mu sync.Mutex
	numbers := map[int]int{}
	return func(r testgithost.Request, done bool) bool {
		if r.Change == 0 {
			return false
		}
		mu.Lock()
		if !done {
			numbers[r.Number] = k.arrive(r.Method + " " + r.Path)
		}
		number := numbers[r.Number]
		mu.Unlock()
		return k.strikes(number, done)
	}
}

type numberKey struct{}

// proxy starts a reverse proxy that counts the changes.
func (k *killer) proxy(t *testing.T, target string, transport http.RoundTripper, changes func(*http.Request) bool) string {
	t.Helper()
	server := httptest.NewServer(k.handler(t, target, transport, changes))
	t.Cleanup(server.Close)
	return server.URL
}

// tlsProxy starts a reverse proxy over TLS that counts all requests, and returns the file of its
// certificate.
func (k *killer) tlsProxy(t *testing.T, target string) (address, ca string) {
	t.Helper()
	// A reused connection that the Git server closes meanwhile would be a fault of the proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	server := httptest.NewTLSServer(k.handler(t, target, transport, func(*http.Request) bool { return true }))
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	check(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return server.URL, ca
}

// ssh starts an SSH server that counts the Git commands.
func (k *killer) ssh(t *testing.T, folder string) string {
	t.Helper()
	var mu sync.Mutex
	numbers := map[string]int{}
	return testgit.StartSSH(t, folder, func(p testgit.Point) testgit.Fault {
		mu.Lock()
		if p.Stage == testgit.Command {
			numbers[p.Service] = k.arrive("SSH " + p.Service)
		}
		number := numbers[p.Service]
		mu.Unlock()
		if (p.Stage == testgit.Command || p.Stage == testgit.Done) && k.strikes(number, p.Stage == testgit.Done) {
			return testgit.Drop
		}
		return testgit.None
	}).URL
}

// handler returns a reverse proxy that counts the changes.
func (k *killer) handler(t *testing.T, target string, transport http.RoundTripper, changes func(*http.Request) bool) http.Handler {
	t.Helper()
	reverse, err := testproxy.Reverse(target)
	check(t, err)
	reverse.Transport = transport
	reverse.ModifyResponse = func(answer *http.Response) error {
		if number, ok := answer.Request.Context().Value(numberKey{}).(int); ok && k.strikes(number, true) {
			return http.ErrAbortHandler
		}
		return nil
	}
	reverse.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if changes(r) {
			number := k.arrive(r.Method + " " + r.URL.Path)
			if k.strikes(number, false) {
				panic(http.ErrAbortHandler)
			}
			r = r.WithContext(context.WithValue(r.Context(), numberKey{}, number))
		}
		reverse.ServeHTTP(w, r)
	})
}

// kubeconfig returns a kubeconfig for a cluster through the killer.
func (k *killer) kubeconfig(t *testing.T, c *testcluster.Cluster) string {
	t.Helper()
	return k.kubeconfigOf(t, c, func(r *http.Request) bool {
		return r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews")
	})
}

// kubeconfigOf returns a kubeconfig for a cluster through the killer, which counts some requests.
func (k *killer) kubeconfigOf(t *testing.T, c *testcluster.Cluster, counted func(*http.Request) bool) string {
	t.Helper()
	transport, err := rest.TransportFor(rest.CopyConfig(c.Client.Config))
	if err != nil {
		t.Fatal(err)
	}
	address := k.proxy(t, c.Client.Config.Host, transport, counted)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: k, cluster: {server: %q}}]\ncontexts: [{name: k, context: {cluster: k, user: k}}]\ncurrent-context: k\nusers: [{name: k, user: {}}]\n", address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
