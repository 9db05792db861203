package loopback

import (
	"context"
	"io"
	"net"
	"sync"
)

// Dial opens a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Forward forwards each connection of a listener to address until ctx is canceled, and closes the listener.
func Forward(ctx context.Context, l net.Listener, address string, dial Dial) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	for {
		here, err := l.Accept()
		if err != nil {
			return // ctx has ended
		}
		group.Go(func() {
			there, err := dial(ctx, "tcp", address)
			if err != nil {
				_ = here.Close() // the client sees it
				return
			}
			connect(ctx, here, there)
		})
	}
}

// connect copies in both directions until both have reached EOF.
func connect(ctx context.Context, here, there net.Conn) {
	stop := context.AfterFunc(ctx, func() { _, _ = here.Close(), there.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{here, there}, {there, here}} {
		both.Go(func() {
			// Errors only affect the client and the server, whose connections are closed.
			if _, err := io.Copy(pair[0], pair[1]); err != nil {
				_, _ = here.Close(), there.Close()
			}
			if half, ok := pair[0].(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
	_, _ = here.Close(), there.Close()
}
