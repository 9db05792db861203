// Package egress restricts the hosts to which flux connects on behalf of untrusted input from a repository. It
// contains the list of allowed hosts and the proxy that enforces it.
package egress

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/web"
)

// Hosts lists the allowed hosts: names, addresses, and networks such as 10.0.0.0/8. A host whose address is not
// public is allowed only if the list also contains its address or network.
type Hosts []string

// Check returns an error for an invalid entry.
func (h Hosts) Check() error {
	for _, entry := range h {
		if _, err := netip.ParsePrefix(entry); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(entry); err == nil {
			continue
		}
		if entry == "" || strings.ContainsAny(entry, "/:@?#* ") {
			return fmt.Errorf("invalid host %q: must be a host name, an IP address or a network such as 10.0.0.0/8", entry)
		}
	}
	return nil
}

// Allows reports whether a host is in the list. Its addresses are checked when a
// connection is opened.
func (h Hosts) Allows(host string) bool {
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return h.names(address)
	}
	return slices.ContainsFunc(h, func(entry string) bool { return strings.EqualFold(entry, strings.TrimSuffix(host, ".")) })
}

// names reports whether the list contains an address or a network that includes it.
func (h Hosts) names(address netip.Addr) bool {
	address = address.Unmap()
	return slices.ContainsFunc(h, func(entry string) bool {
		if network, err := netip.ParsePrefix(entry); err == nil {
			return network.Contains(address)
		}
		named, err := netip.ParseAddr(entry)
		return err == nil && named.Unmap() == address || entry == "localhost" && address.IsLoopback()
	})
}

// reserved lists networks that are not public, in addition to private, loopback
// and link-local networks. It includes IPv4 addresses embedded in IPv6 addresses.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is public.
func Public(address netip.Addr) bool {
	address = address.Unmap()
	if !address.IsGlobalUnicast() || address.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(address) })
}

// dial opens a connection to a public or allowed address.
func (h Hosts) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 10 * time.Second, Control: h.control}).DialContext(ctx, network, address)
}

// control is called with the resolved address before a connection is opened.
func (h Hosts) control(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parsing the address %s: %w", address, err)
	}
	if ip := parsed.Addr().WithZone(""); !Public(ip) && !h.names(ip) {
		return fmt.Errorf("the address %s is not public: allow it with --allow-remote-bases %s", ip, ip)
	}
	return nil
}

// Proxy forwards connections to the allowed hosts. Redirects are separate requests, so it checks them as well.
type Proxy struct {
	hosts    Hosts
	token    string
	listener net.Listener
	server   *http.Server
	forward  *http.Transport
	done     sync.WaitGroup

	mu      sync.Mutex
	refused error
}

// Listen starts a proxy on a port of the loopback interface. The caller must
// close it.
func Listen(ctx context.Context, hosts Hosts) (*Proxy, error) {
	forward, err := web.Server{Dial: hosts.dial}.Transport()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy for remote bases: %w", err)
	}
	p := &Proxy{hosts: hosts, token: rand.Text(), listener: listener, forward: forward}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	p.done.Go(func() { _ = p.server.Serve(listener) }) // Close ends it
	return p, nil
}

// URL returns the URL of the proxy with its credentials.
func (p *Proxy) URL() string {
	return (&url.URL{Scheme: "http", User: url.UserPassword("flux", p.token), Host: p.listener.Addr().String()}).String()
}

// Refused returns the error of the first rejected request, or nil.
func (p *Proxy) Refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Close stops the proxy and closes its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.done.Wait()
	return err
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("flux:"+p.token))
	if r.Header.Get("Proxy-Authorization") != want {
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if host := r.URL.Hostname(); !p.hosts.Allows(host) {
		p.refuse(w, fmt.Errorf("host %s is not allowed", host))
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.pass(w, r)
}

func (p *Proxy) refuse(w http.ResponseWriter, err error) {
	p.mu.Lock()
	if p.refused == nil {
		p.refused = err
	}
	p.mu.Unlock()
	http.Error(w, err.Error(), http.StatusForbidden)
}

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Del("Proxy-Authorization")
	out.Header.Del("Proxy-Connection")
	response, err := p.forward.RoundTrip(out)
	if err != nil {
		p.refuse(w, err)
		return
	}
	defer func() { _ = response.Body.Close() }() // opened for reading
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // the client detects a truncated response
}

func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := p.forward.DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		p.refuse(w, err)
		return
	}
	defer func() { _ = there.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		p.refuse(w, errors.New("connection cannot be hijacked"))
		return
	}
	here, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	ctx := r.Context()
	stop := context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(there, here); _ = there.Close() })
	both.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
	both.Wait()
}
