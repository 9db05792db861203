package transport

import (
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/fluxkit/flux/internal/web"
)

// Opening returns a transport that delays requests until the first request has opened a connection. Otherwise,
// fifteen concurrent lists would open fifteen connections with a TLS handshake each, although they can share a single
// HTTP/2 connection. With HTTP/1.1, each of the other requests then opens its own connection.
func Opening(next http.RoundTripper) http.RoundTripper {
	var begun atomic.Bool
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	return web.Wrap(next, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if begun.Swap(true) {
			select {
			case <-opened:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		}
		// The other requests continue when the first one ends, even if it fails.
		defer open()
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { open() }}
		return next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	})
}
