package testcluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// chunk is the maximum size of a read from a connection, and window the maximum
// number of chunks in transit.
const (
	chunk  = 64 << 10
	window = 256
)

// Line is a TCP proxy with the latency of a distant cluster. TLS and HTTP/2 pass
// unchanged. Every byte is delayed in both directions, and a new connection costs
// a round trip before its first byte. Limited throughput is not simulated.
type Line struct {
	// Kubeconfig is the path of a kubeconfig that connects through the line.
	Kubeconfig string

	target   string
	delay    time.Duration
	address  string
	serving  sync.WaitGroup
	mu       sync.Mutex
	listener net.Listener // nil while the line is cut
	open     map[net.Conn]bool
}

// NewLine starts a line to a cluster with a delay in each direction.
func NewLine(c *Cluster, delay time.Duration) (*Line, error) {
	target, err := url.Parse(c.Client.Config.Host)
	if err != nil {
		return nil, err
	}
	l := &Line{target: target.Host, delay: delay, address: "127.0.0.1:0", open: map[net.Conn]bool{}}
	if err := l.Restore(); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, l.Cut())
	}
	for _, cluster := range cfg.Clusters {
		cluster.Server = "https://" + l.address
	}
	f, err := os.CreateTemp("", "flux-kubeconfig-")
	if err != nil {
		return nil, errors.Join(err, l.Cut())
	}
	l.Kubeconfig = f.Name()
	if err := errors.Join(f.Close(), clientcmd.WriteToFile(*cfg, l.Kubeconfig)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Cut closes all connections and rejects new ones until Restore.
func (l *Line) Cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil {
		return nil
	}
	err := l.listener.Close()
	l.listener = nil
	for conn := range l.open {
		closed(conn)
		delete(l.open, conn)
	}
	return err
}

// Restore accepts connections again, on the same port.
func (l *Line) Restore() error {
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.listener, l.address = listener, listener.Addr().String()
	l.mu.Unlock()
	l.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the line is cut
			}
			l.serving.Go(func() { l.carry(conn) })
		}
	})
	return nil
}

// Close stops the line.
func (l *Line) Close() error {
	err := l.Cut()
	l.serving.Wait()
	return errors.Join(err, os.Remove(l.Kubeconfig))
}

// keep registers a connection, so that it is closed with the line. It returns
// false if the line is cut.
func (l *Line) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		l.open[conn] = true
	}
	return l.listener != nil
}

func (l *Line) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[conn] {
		delete(l.open, conn)
		closed(conn)
	}
}

func (l *Line) carry(client net.Conn) {
	// The client is connected immediately, so its first bytes are delayed by the
	// round trip of the connection.
	connected := time.Now().Add(2 * l.delay)
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		closed(client)
		return
	}
	for _, conn := range []net.Conn{client, server} {
		if !l.keep(conn) {
			closed(conn)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(server, client, connected) })
	both.Go(func() { l.pump(client, server, connected) })
	both.Wait()
	l.drop(client)
	l.drop(server)
}

type parcel struct {
	data []byte
	due  time.Time
}

// pump copies bytes in one direction, each after the delay.
func (l *Line) pump(to, from net.Conn, connected time.Time) {
	parcels := make(chan parcel, window)
	var writer sync.WaitGroup
	writer.Go(func() {
		for p := range parcels {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				closed(from) // stops the reader
				for range parcels {
				}
				return
			}
		}
		if tcp, ok := to.(*net.TCPConn); ok && tcp.CloseWrite() != nil {
			closed(from)
		}
	})
	for {
		data := make([]byte, chunk)
		n, err := from.Read(data)
		if n > 0 {
			at := time.Now()
			if at.Before(connected) {
				at = connected
			}
			parcels <- parcel{data[:n], at.Add(l.delay)}
		}
		if err != nil {
			break
		}
	}
	close(parcels)
	writer.Wait()
}

// closed closes a connection that may already be closed.
func closed(c io.Closer) {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		fmt.Fprintln(os.Stderr, "closing a connection of a line:", err)
	}
}
