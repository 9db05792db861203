package kube

import (
	"net/http"
	"net/http/httptrace"
	"sync"
)

// opening lets the first request open a connection and has those that come
// meanwhile wait for it. Without it, fifteen lists at once would make fifteen
// connections with a TLS handshake each, and then share one by HTTP/2. Where
// the server speaks only HTTP/1.1, the others open theirs afterwards.
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
	// Whatever comes of the first request, the others are not held any longer.
	defer open()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { open() }}
	return o.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

// WrappedRoundTripper lets client-go reach the transport below.
func (o *opening) WrappedRoundTripper() http.RoundTripper { return o.next }
