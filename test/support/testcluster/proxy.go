package testcluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/test/support/testproxy"
)

// Proxy is an HTTP proxy for a cluster that records requests and can delay them.
type Proxy struct {
	// Kubeconfig is the path of a kubeconfig that connects through the proxy.
	Kubeconfig string

	server *http.Server
	done   chan error
	mu     sync.Mutex
	seen   func(method, uri string)
	answer func(http.ResponseWriter, *http.Request) bool
	serve  func(*http.Request) (served func())
}

// NewProxy starts a proxy that delays every request and every response.
func NewProxy(c *Cluster, delay time.Duration) (*Proxy, error) {
	reverse, err := testproxy.Reverse(c.Client.Config.Host)
	if err != nil {
		return nil, err
	}
	reverse.Transport, err = rest.TransportFor(rest.CopyConfig(c.Client.Config))
	if err != nil {
		return nil, err
	}
	reverse.ModifyResponse = func(*http.Response) error {
		time.Sleep(delay)
		return nil
	}
	p := &Proxy{
		done: make(chan error, 1), seen: func(string, string) {}, answer: func(http.ResponseWriter, *http.Request) bool { return false },
		serve: func(*http.Request) func() { return func() {} },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			seen, answer, serve := p.seen, p.answer, p.serve
			p.mu.Unlock()
			seen(r.Method, r.URL.RequestURI())
			if answer(w, r) {
				return
			}
			defer serve(r)()
			time.Sleep(delay)
			reverse.ServeHTTP(w, r)
		}),
	}
	go func() { p.done <- p.server.Serve(listener) }()
	p.Kubeconfig, err = writeKubeconfig("http://" + listener.Addr().String())
	return p, err
}

// OnRequest sets a function that is called for every further request.
func (p *Proxy) OnRequest(seen func(method, uri string)) {
	var one sync.Mutex
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = func(method, uri string) {
		one.Lock()
		defer one.Unlock()
		seen(method, uri)
	}
}

// OnServe sets a function that is called for every further request. The function that it returns is
// called before the client can detect the end of the response.
func (p *Proxy) OnServe(serve func(*http.Request) (served func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve = serve
}

// Misbehave sets a function that is called for every further request. If it returns true, it has
// written the response, and the request is not forwarded to the cluster.
func (p *Proxy) Misbehave(answer func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// Close stops the proxy and closes its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, os.Remove(p.Kubeconfig))
}

func writeKubeconfig(server string) (string, error) {
	f, err := os.CreateTemp("", "flux-kubeconfig-")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `apiVersion: v1
kind: Config
clusters: [{name: proxy, cluster: {server: %q}}]
contexts: [{name: proxy, context: {cluster: proxy, user: proxy}}]
current-context: proxy
users: [{name: proxy, user: {}}]
`, server)
	return f.Name(), errors.Join(err, f.Close())
}
