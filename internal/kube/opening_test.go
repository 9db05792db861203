package kube_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
)

// TestRequestsShareAConnection sends many concurrent requests: they share one connection with
// HTTP/2, and have one each with HTTP/1.1.
func TestRequestsShareAConnection(t *testing.T) {
	t.Parallel()
	const many = 15
	for name, want := range map[string]struct {
		http2       bool
		connections int32
	}{"HTTP/2": {true, 1}, "HTTP/1.1": {false, many}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int32
			var all sync.WaitGroup
			all.Add(many)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				all.Done()
				all.Wait()
				fakeapi.Reply(w, `{"items":[]}`)
			}))
			server.EnableHTTP2 = want.http2
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateActive && !want.http2 || state == http.StateNew && want.http2 {
					connections.Add(1)
				}
			}
			server.StartTLS()
			t.Cleanup(server.Close)
			client, err := kube.New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range many {
				wg.Go(func() {
					_, err := client.List(t.Context(), podResource(), kube.Selection{}, func(controllers.Object) error { return nil })
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if got := connections.Load(); got != want.connections {
				t.Errorf("%d connections, want %d", got, want.connections)
			}
		})
	}
}

// TestFirstRequestFailing checks that other requests continue if the first one fails.
func TestFirstRequestFailing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client, err := kube.New(&rest.Config{Host: "http://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := client.Raw(t.Context(), "/version"); err == nil {
				t.Error("response without a server")
			}
		})
	}
	wg.Wait()
}
