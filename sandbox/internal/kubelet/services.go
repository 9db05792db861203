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

// services assigns a loopback address to each port of a Service. The address stays
// the same while the pods of the Service change, as with a cluster's proxy.
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

// address returns the loopback address of a Service's port. The Service need not
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
		l, err = net.Listen("tcp", "127.0.0.1:0") // another program uses the stored port
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
			return // the listener is closed when the sandbox stops
		}
		s.group.Go(func() { s.connect(conn, namespace, name, port) })
	}
}

// connect forwards one connection to a ready pod of the Service. Without a ready
// pod the connection is closed.
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
	// An error after the connection was made concerns the client and the pod only.
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

// endpoint returns the address of a ready pod of a Service, or "" when there is none.
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

// splice copies in both directions until conn reaches EOF or fails, which ends the
// other direction as well, and closes both.
func splice(conn net.Conn, stream io.ReadWriteCloser) error {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		// A client that disconnects causes an error below, when the response is sent.
		_, _ = io.Copy(conn, stream)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, err := io.Copy(stream, conn)
	// The stream of a port-forward may be closed already when the client is gone.
	_, _ = conn.Close(), stream.Close()
	if _, plain := stream.(net.Conn); plain {
		<-asked // a multiplexed stream is read to EOF by the owner of its connection
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
