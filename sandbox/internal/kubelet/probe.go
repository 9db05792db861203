package kubelet

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe runs the readiness probe of a container against its process. Until the first
// success, it ignores the period of the probe, so that the pod becomes ready quickly.
type probe struct {
	spec     *corev1.Probe
	ports    []corev1.ContainerPort
	address  func(int32) string
	client   *http.Client
	next     time.Time
	failures int32
}

func newProbe(pod *corev1.Pod, container string, address func(int32) string) *probe {
	p := &probe{address: address}
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			p.spec, p.ports = c.ReadinessProbe, c.Ports
		}
	}
	p.client = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return p
}

// check returns the result of the probe, and whether the probe was due.
func (p *probe) check(ctx context.Context, now time.Time, wasReady bool) (ready, known bool) {
	if now.Before(p.next) {
		return false, false
	}
	if p.once(ctx) {
		p.failures = 0
		p.next = now.Add(p.period())
		return true, true
	}
	p.failures++
	if wasReady && p.spec != nil && p.failures < max(p.spec.FailureThreshold, 1) {
		p.next = now.Add(p.period())
		return true, true
	}
	return false, true
}

func (p *probe) period() time.Duration {
	if p.spec == nil || p.spec.PeriodSeconds == 0 {
		return 10 * time.Second
	}
	return time.Duration(p.spec.PeriodSeconds) * time.Second
}

func (p *probe) once(ctx context.Context) bool {
	switch {
	case p.spec == nil:
		return true
	case p.spec.HTTPGet != nil:
		return p.get(ctx, p.spec.HTTPGet)
	case p.spec.TCPSocket != nil:
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", p.address(p.port(p.spec.TCPSocket.Port)))
		return err == nil && conn.Close() == nil
	}
	return true // exec and gRPC probes are not supported: a running process counts as ready
}

func (p *probe) get(ctx context.Context, action *corev1.HTTPGetAction) bool {
	addr := p.address(p.port(action.Port))
	if addr == "" {
		return false
	}
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+addr+"/"+strings.TrimPrefix(action.Path, "/"), nil)
	if err != nil {
		return false
	}
	response, err := p.client.Do(request)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	ok := response.StatusCode >= 200 && response.StatusCode < 400
	return response.Body.Close() == nil && err == nil && ok
}

func (p *probe) port(port intstr.IntOrString) int32 {
	return containerPort(p.ports, port)
}

// containerPort returns the number of a port given by name or number.
func containerPort(ports []corev1.ContainerPort, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, candidate := range ports {
		if candidate.Name == port.StrVal {
			return candidate.ContainerPort
		}
	}
	return 0
}

func portNumber(addr string) int {
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return port
}

func kubeTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
