package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
	spdytransport "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube/transport"
)

const (
	// forwardPings is the interval of pings, which keep proxies from closing an idle connection.
	forwardPings = 10 * time.Second
	// maxReason is the maximum length of an error message from the node.
	maxReason = 4 << 10
)

// Forward connects to a port of a pod through the API server. ctx limits the time to connect.
func (p Pods) Forward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	conn, err := p.forward(ctx, namespace, pod, port)
	if err != nil {
		return nil, fmt.Errorf("connecting to port %d of pod %s/%s: %w", port, namespace, pod, err)
	}
	return conn, nil
}

func (p Pods) forward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	address := podResource().locate(p.c.raw.Get(), namespace, pod).SubResource("portforward").URL().String()
	streams, err := p.streams(ctx, address)
	if err != nil {
		return nil, err
	}
	f, err := newForwarded(ctx, streams, port)
	if err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	return f, nil
}

// streams opens a connection for several streams. It falls back to SPDY, because a proxy may
// not support WebSockets, and a role may allow create (POST) but not get.
func (p Pods) streams(ctx context.Context, address string) (httpstream.Connection, error) {
	streams, err := p.overWebSocket(ctx, address)
	if !httpstream.IsUpgradeFailure(err) && !httpstream.IsHTTPSProxyError(err) {
		return streams, err
	}
	streams, fallback := p.overSPDY(ctx, address)
	var refused *httpstream.UpgradeFailureError
	if fallback != nil && errors.As(err, &refused) {
		return nil, refused.Cause // the error of the server
	}
	return streams, fallback
}

func (p Pods) overWebSocket(ctx context.Context, address string) (httpstream.Connection, error) {
	upgraded, holder, err := websocket.RoundTripperFor(p.c.Config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(upgraded, holder, request, constants.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	tunnel := portforward.NewTunnelingConnection("client", socket)
	streams, err := spdy.NewClientConnectionWithPings(tunnel, forwardPings)
	if err != nil {
		return nil, errors.Join(err, tunnel.Close())
	}
	return streams, nil
}

func (p Pods) overSPDY(ctx context.Context, address string) (httpstream.Connection, error) {
	upgraded, upgrader, err := spdytransport.RoundTripperFor(p.c.Config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return nil, err
	}
	streams, _, err := spdytransport.NegotiateStreaming(upgrader, &http.Client{Transport: upgraded, CheckRedirect: transport.SameServer}, request, constants.PortForwardV1Name)
	return streams, err
}

// forwarded is a connection to a pod port. Streams have no deadlines, so a read must be stopped
// by closing the connection, as net/http does.
type forwarded struct {
	httpstream.Stream
	streams httpstream.Connection
	started bool
	// reason is the error message of a node that cannot connect to the port. It is complete when
	// reasonRead is closed.
	reason     []byte
	reasonRead chan struct{}
}

func newForwarded(ctx context.Context, streams httpstream.Connection, port int) (*forwarded, error) {
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(port))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	failure, err := streams.CreateStream(header)
	if err != nil {
		return nil, err
	}
	if err := failure.Close(); err != nil { // this direction is not used
		return nil, err
	}
	f := &forwarded{streams: streams, reasonRead: make(chan struct{})}
	go func() {
		defer close(f.reasonRead)
		f.reason, _ = budget.Head(failure, maxReason) // a partial message is sufficient
	}()
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	if f.Stream, err = streams.CreateStream(header); err != nil {
		return nil, f.refusal(ctx, err)
	}
	return f, nil
}

// refusal returns the error of the node, or err if the node sends none before ctx ends. A node that
// cannot connect to the port may reset the data stream before accepting it.
func (f *forwarded) refusal(ctx context.Context, err error) error {
	select {
	case <-f.reasonRead:
	case <-ctx.Done():
		return err
	}
	if len(f.reason) > 0 {
		return errors.New(string(f.reason))
	}
	return err
}

// Read implements net.Conn. If the connection ends without data, it returns the error of the node.
func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.Stream.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) || f.started {
		f.started = f.started || n > 0
		return n, err
	}
	return 0, f.refusal(context.Background(), err)
}

// Close implements net.Conn.
func (f *forwarded) Close() error {
	err := f.streams.Close()
	<-f.reasonRead
	return err
}

// forwardedAddr is the address of a forwarded connection.
type forwardedAddr struct{}

func (forwardedAddr) Network() string { return "port-forward" }
func (forwardedAddr) String() string  { return "port-forward" }

// LocalAddr implements net.Conn.
func (f *forwarded) LocalAddr() net.Addr { return forwardedAddr{} }

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr { return forwardedAddr{} }

// SetDeadline implements net.Conn. It has no effect.
func (f *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn. It has no effect.
func (f *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn. It has no effect.
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }
