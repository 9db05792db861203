package loopback

import (
	"context"
	"io"
	"net"
	"testing"
)

// TestForward sends a request through a listener to a server that responds after the end of the request, and checks
// that no connection stays open.
func TestForward(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		request, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("answer to "), request...))
		_ = conn.Close()
	}()
	front, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Forward(ctx, front, server.Addr().String(), (&net.Dialer{}).DialContext)
	}()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "question"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || string(text) != "answer to question" {
		t.Errorf("%q, %v", text, err)
	}
	idle, err := (&net.Dialer{}).DialContext(ctx, "tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if n, err := io.ReadAll(idle); len(n) > 0 {
		t.Errorf("an idle connection returns %q, %v", n, err)
	}
}
