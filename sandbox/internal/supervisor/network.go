package supervisor

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net"
	nethttp "net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/access"
	"github.com/fluxkit/flux/sandbox/internal/credentials"
	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/loopback"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// network is the network of the components: the network of this machine or, if the sandbox is isolated, the network
// namespace of the starter's thread. Sockets belong to the network of the thread that opens them, and work in all threads.
type network struct {
	starter  *process.Starter
	isolated bool
	group    sync.WaitGroup
}

// newNetwork creates the network, before any component is started.
func newNetwork(ctx context.Context, starter *process.Starter, isolated bool) (*network, error) {
	n := &network{starter: starter, isolated: isolated}
	if !isolated {
		return n, nil
	}
	var entered error
	err := starter.Do(ctx, func() { entered = isolation.Enter() })
	return n, errors.Join(err, entered)
}

// dial opens a connection to a component.
func (n *network) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	if !n.isolated {
		return dialer.DialContext(ctx, network, address)
	}
	var failed error
	err = n.starter.Do(ctx, func() { conn, failed = dialer.DialContext(ctx, network, address) })
	return conn, errors.Join(err, failed)
}

// listen opens a listener in the components' network.
func (n *network) listen(ctx context.Context, address string) (l net.Listener, err error) {
	var failed error
	err = n.starter.Do(ctx, func() { l, failed = loopback.Listen(ctx, address) })
	return l, errors.Join(err, failed)
}

// publish makes the API server, the Git server and the registry available on this machine until ctx is canceled. The API
// server authenticates its clients. The other servers trust all clients in their network, so clients on this machine
// require the token.
func (n *network) publish(ctx context.Context, folder state.Folder, config state.Config, log *log.Logger) error {
	api, err := loopback.Listen(ctx, config.Addr("apiserver"))
	if err != nil {
		return err
	}
	n.group.Go(func() { loopback.Forward(ctx, api, config.Addr("apiserver"), n.dial) })
	token, err := access.ServerToken(folder)
	if err != nil {
		return err
	}
	for _, name := range []string{"git-http", "registry"} {
		l, err := loopback.Listen(ctx, config.Addr(name))
		if err != nil {
			return err
		}
		server := &nethttp.Server{Handler: n.guarded(config.Addr(name), token, log), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		n.group.Go(func() {
			defer stop()
			_ = server.Serve(l) // until ctx ends
		})
	}
	return nil
}

// guarded forwards requests with the token to a server in the components' network.
func (n *network) guarded(address, token string, log *log.Logger) nethttp.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Authorization")
		},
		Transport: &nethttp.Transport{DialContext: n.dial}, FlushInterval: -1, ErrorLog: log,
	}
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		name, password, _ := r.BasicAuth()
		if name != access.ServerUser || subtle.ConstantTimeCompare([]byte(password), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", credentials.Basic)
			nethttp.Error(w, "a valid username and password are required", nethttp.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// reach makes addresses of this machine available to the components, except for those that already are.
func (n *network) reach(ctx context.Context, addresses, before []string) ([]string, error) {
	for _, address := range addresses {
		if slices.Contains(before, address) {
			continue
		}
		l, err := n.listen(ctx, address)
		if err != nil {
			return before, fmt.Errorf("making %s available in the sandbox: %w", address, err)
		}
		n.group.Go(func() { loopback.Forward(ctx, l, address, (&net.Dialer{}).DialContext) })
		before = append(before, address)
	}
	return before, nil
}
