package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/sandbox/internal/loopback"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// services assigns a loopback address to each port of a Service. The address stays
// the same while the pods of the Service change, as with a cluster's proxy.
type services struct {
	folder state.Folder
	pods   *pods
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu        sync.Mutex
	ports     map[string]int
	listeners map[string]net.Listener
}

func newServices(folder state.Folder, pods *pods) (*services, error) {
	ports, err := folder.LoadServicePorts()
	if err != nil {
		return nil, err
	}
	s := &services{folder: folder, pods: pods, ports: ports, listeners: map[string]net.Listener{}}
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
	s.group.Go(func() { loopback.Forward(s.ctx, l, "", s.dial(namespace, name, port)) })
	return l.Addr().String(), s.folder.SaveServicePorts(s.ports)
}

// dial opens a connection to a ready pod of a Service. If there is none, the client's connection is closed.
func (s *services) dial(namespace, name string, port int32) loopback.Dial {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr := s.pods.endpoint(namespace, name, port)
		if addr == "" {
			return nil, fmt.Errorf("service %s/%s has no ready pod", namespace, name)
		}
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
	}
}

func (s *services) close() {
	s.cancel()
	s.group.Wait()
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

// splice copies in both directions until conn reaches EOF or fails, and closes both. The stream of a port-forward is read to
// EOF by the owner of its connection.
func splice(conn net.Conn, stream io.ReadWriteCloser) error {
	go func() {
		// A client that disconnects causes an error below, when the response is sent.
		_, _ = io.Copy(conn, stream)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, err := io.Copy(stream, conn)
	// The stream may already be closed if the client has disconnected.
	_, _ = conn.Close(), stream.Close()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
