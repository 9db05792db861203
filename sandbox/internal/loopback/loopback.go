// Package loopback opens listeners that only this machine can reach.
package loopback

import (
	"context"
	"fmt"
	"net"
)

// Listen opens a TCP listener on a loopback address. Other addresses are refused before a port is opened, because the
// sandbox's servers trust every client that can reach them. Port 0 selects a free port.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading listen address %q: %w", address, err)
	}
	if host == "" {
		return nil, fmt.Errorf("listen address %q has no host and would listen on all interfaces: write 127.0.0.1, [::1] or localhost before the port", address)
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
