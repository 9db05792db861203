// Package web sends HTTP requests. It is the only package that configures TLS, proxies, redirects, retries and response
// limits. internal/kube uses the connections of client-go, but redirects, retries and limits from this package.
//
//   - [Server] describes the connections to a server: certificates, proxy, timeouts.
//   - [Client] adds what requests have in common: a User-Agent, redirects, [Limits] and [Retry].
//   - Package egress restricts the hosts that untrusted input can select, package download fetches files, and package
//     webhook calls Receivers.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// dialTimeout is the maximum time for connecting to an address and for the TLS handshake.
	dialTimeout = 10 * time.Second
	// idleTimeout is the time after which unused connections are closed, and idlePerHost the maximum number of
	// unused connections per host, which equals the number of concurrent requests to a registry.
	idleTimeout, idlePerHost = 90 * time.Second, 16
)

// Server describes the connections to a server. The zero value trusts the system's CA certificates and uses the
// proxy settings of the environment.
type Server struct {
	// Name is the name of the server in errors, such as "the bucket".
	Name string
	// CA replaces the system's CA certificates, unless SystemCA is set. Cert and Key are a client certificate. All are
	// PEM-encoded.
	CA, Cert, Key []byte
	SystemCA      bool
	// Proxy replaces the proxy settings of the environment.
	Proxy *url.URL
	// Dial replaces direct network connections, for example with connections through the Kubernetes API. With Dial,
	// no proxy is used, and each request uses a separate connection.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ResponseTimeout is the maximum time until the response headers. If it is 0, only the context limits this time.
	ResponseTimeout time.Duration
}

// Transport returns a transport with verified TLS.
func (s Server) Transport() (*http.Transport, error) {
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: s.ResponseTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   idlePerHost,
		IdleConnTimeout:       idleTimeout,
	}
	if s.Proxy != nil {
		t.Proxy = http.ProxyURL(s.Proxy)
	}
	if s.Dial != nil {
		t.Proxy, t.DialContext, t.DisableKeepAlives = nil, s.Dial, true
	}
	return t, nil
}

func (s Server) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(s.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if s.SystemCA {
			if system, err := x509.SystemCertPool(); err == nil { // some systems have no certificate pool
				config.RootCAs = system
			}
		}
		if !config.RootCAs.AppendCertsFromPEM(s.CA) {
			return nil, errors.New("the CA certificate of " + s.Name + " contains no PEM certificate")
		}
	}
	if len(s.Cert) > 0 {
		pair, err := tls.X509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", s.Name, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Client describes an HTTP client for a server.
type Client struct {
	Server Server
	// UserAgent is the User-Agent header of all requests.
	UserAgent string
	// Redirects decides which redirects are followed: [SameServer], [OtherServers], [Encrypted] or [NoRedirects].
	Redirects func(next *http.Request, via []*http.Request) error
	// Limits bounds the responses, and Retry repeats requests.
	Limits Limits
	Retry  Retry
	// Timeout is the maximum time of a request including redirects, retries and the body. If it is 0, only the context
	// limits this time.
	Timeout time.Duration
}

// HTTP returns the client.
func (c Client) HTTP() (*http.Client, error) {
	transport, err := c.Server.Transport()
	if err != nil {
		return nil, err
	}
	agent := Wrap(c.Limits.Transport(transport), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if c.UserAgent != "" {
			r = r.Clone(r.Context())
			r.Header.Set("User-Agent", c.UserAgent)
		}
		return next.RoundTrip(r)
	})
	return &http.Client{Transport: c.Retry.Transport(agent), CheckRedirect: c.Redirects, Timeout: c.Timeout}, nil
}

// Wrap returns a transport that calls do for each request. It is the only wrapper besides the one in package redact.
func Wrap(next http.RoundTripper, do func(r *http.Request, next http.RoundTripper) (*http.Response, error)) http.RoundTripper {
	return &wrapped{next: next, do: do}
}

type wrapped struct {
	next http.RoundTripper
	// repeats is set by Retry.
	repeats bool
	do      func(r *http.Request, next http.RoundTripper) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (w *wrapped) RoundTrip(r *http.Request) (*http.Response, error) { return w.do(r, w.next) }

// WrappedRoundTripper returns the wrapped transport to client-go.
func (w *wrapped) WrappedRoundTripper() http.RoundTripper { return w.next }

// CloseIdleConnections closes the unused connections of the wrapped transport.
func (w *wrapped) CloseIdleConnections() {
	if next, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
