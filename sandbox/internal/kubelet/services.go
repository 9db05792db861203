package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// services gives ports of Services a loopback address each, which stays the
// same while the pods behind it come and go, as a cluster's proxy does.
type services struct {
	folder state.Folder
	pods   *pods
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu        sync.Mutex
	ports     map[string]int
	listeners map[string]net.Listener
}

func newServices(folder state.Folder, pods *pods, log *slog.Logger) (*services, error) {
	ports, err := folder.LoadServicePorts()
	if err != nil {
		return nil, err
	}
	s := &services{folder: folder, pods: pods, log: log, ports: ports, listeners: map[string]net.Listener{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// address is the loopback address of a Service's port; the Service need not
// exist yet.
func (s *services) address(namespace, name string, port int32) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s/%s:%d", namespace, name, port)
	if l, ok := s.listeners[key]; ok {
		return l.Addr().String(), nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[key])))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0") // another program took the port meanwhile
	}
	if err != nil {
		return "", fmt.Errorf("listening for service %s: %w", key, err)
	}
	s.listeners[key], s.ports[key] = l, portNumber(l.Addr().String())
	s.group.Go(func() { s.accept(l, namespace, name, port) })
	return l.Addr().String(), s.folder.SaveServicePorts(s.ports)
}

func (s *services) accept(l net.Listener, namespace, name string, port int32) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed: the sandbox stops
		}
		s.group.Go(func() { s.connect(conn, namespace, name, port) })
	}
}

// connect carries one connection to a ready pod of the Service; without one it
// is closed, as good as refused.
func (s *services) connect(conn net.Conn, namespace, name string, port int32) {
	addr := s.pods.endpoint(namespace, name, port)
	if addr == "" {
		_ = conn.Close()
		return
	}
	back, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(s.ctx, "tcp", addr)
	if err != nil {
		_ = conn.Close()
		return
	}
	stop := context.AfterFunc(s.ctx, func() { _, _ = conn.Close(), back.Close() })
	defer stop()
	// An end in mid-stream is the business of the two that talk.
	_ = splice(back, conn)
}

func (s *services) close() error {
	s.cancel()
	s.mu.Lock()
	var err error
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.mu.Unlock()
	s.group.Wait()
	return err
}

// endpoint is where a ready pod behind a Service listens, "" when none does.
func (p *pods) endpoint(namespace, name string, port int32) string {
	service, err := p.services.Services(namespace).Get(name)
	if err != nil || len(service.Spec.Selector) == 0 {
		return ""
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sp := range service.Spec.Ports {
		if sp.Port != port {
			continue
		}
		for _, w := range p.workers {
			pod := w.current()
			if pod.Namespace != namespace || !selector.Matches(labels.Set(pod.Labels)) || !w.isReady() {
				continue
			}
			for _, c := range pod.Spec.Containers {
				if addr := w.address(containerPort(c.Ports, sp.TargetPort)); addr != "" {
					return addr
				}
			}
		}
	}
	return ""
}

// splice copies both ways until conn has said all it has to say, which ends the
// other direction too, and closes both.
func splice(conn net.Conn, stream io.ReadWriteCloser) error {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		// An asker that breaks off is seen below, when the answer cannot be sent.
		_, _ = io.Copy(conn, stream)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, err := io.Copy(stream, conn)
	// Streams of a port-forward may be closed already when the client is gone.
	_, _ = conn.Close(), stream.Close()
	if _, plain := stream.(net.Conn); plain {
		<-asked // a multiplexed stream is read to its end by who owns the connection
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
