// Package loopback opens listeners that only this machine can reach.
package loopback

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listen opens a TCP listener on a loopback address. Other addresses are rejected before a port is opened, because the
// sandbox's servers trust every client that can connect. Port 0 selects a free port.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading listen address %q: %w", address, err)
	}
	if host == "" {
		return nil, fmt.Errorf("listen address %q has no host and would listen on all interfaces: set the host to 127.0.0.1, [::1] or localhost", address)
	}
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("resolving listen address %q: %w", address, err)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("listen address %q is reachable from other machines: use 127.0.0.1, [::1] or localhost", address)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", resolved.String())
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return listener, nil
}

// headerTime is the maximum time for a client to send a request header.
const headerTime = 10 * time.Second

// Serve serves HTTP until ctx is canceled, then closes all connections and waits for pending requests. Clients can retry
// interrupted requests.
func Serve(ctx context.Context, l net.Listener, h http.Handler, logger *log.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Close does not wait for handlers. The state of a connection changes to closed only after its handler has returned, and
	// to new before Serve can return.
	var open sync.WaitGroup
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ErrorLog: logger, BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Done()
			default: // active and idle connections are open
			}
		},
	}
	unhook := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer unhook()
	err := server.Serve(l)
	if ctx.Err() != nil {
		err = nil
	}
	stop()
	open.Wait()
	return err
}
