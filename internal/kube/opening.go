package kube

import (
	"net/http"
	"net/http/httptrace"
	"sync"
)

// opening delays requests until the first request has opened a connection. Otherwise fifteen
// concurrent lists would open fifteen connections with a TLS handshake each, although they can
// share one with HTTP/2. With HTTP/1.1 the other requests then open their own.
type opening struct {
	next http.RoundTripper

	mu     sync.Mutex
	begun  bool
	opened chan struct{}
}

func newOpening(next http.RoundTripper) http.RoundTripper {
	return &opening{next: next, opened: make(chan struct{})}
}

// RoundTrip implements http.RoundTripper.
func (o *opening) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	first := !o.begun
	o.begun = true
	o.mu.Unlock()
	if !first {
		select {
		case <-o.opened:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return o.next.RoundTrip(r)
	}
	open := sync.OnceFunc(func() { close(o.opened) })
	// The other requests continue when the first one ends, even with an error.
	defer open()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { open() }}
	return o.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

// WrappedRoundTripper returns the wrapped transport to client-go.
func (o *opening) WrappedRoundTripper() http.RoundTripper { return o.next }
