package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // registers the conversion of log options from a query

	"github.com/fluxkit/flux/sandbox/internal/pki"
)

// serve accepts requests of the API server only, by requiring a client certificate,
// because logs and port-forwards bypass RBAC.
func (k *Kubelet) serve(ctx context.Context) error {
	config, err := k.serverTLS()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", k.config.Addr("kubelet"))
	if err != nil {
		return fmt.Errorf("listening as the kubelet: %w", err)
	}
	server := &http.Server{
		Handler: k.routes(), TLSConfig: config, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	select {
	case <-ctx.Done():
		// A graceful shutdown would wait for clients that follow logs.
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	case err := <-ended:
		return fmt.Errorf("serving as the kubelet: %w", err)
	}
}

func (k *Kubelet) serverTLS() (*tls.Config, error) {
	dir := pki.Dir(k.folder.Path("pki"))
	pair, err := tls.LoadX509KeyPair(dir.Cert("kubelet"), dir.Key("kubelet"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's certificate: %w", err)
	}
	ca, err := os.ReadFile(dir.CA())
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		// Port-forwarding upgrades the connection, which HTTP/2 does not support.
		NextProtos: []string{"http/1.1"},
	}, nil
}

func (k *Kubelet) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.servePortForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", k.servePortForward)
	for _, verb := range []string{"exec", "attach", "run"} {
		mux.HandleFunc("/"+verb+"/", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusNotImplemented, verb+" is not supported: the pods of a sandbox are not containers")
		})
	}
	return mux
}

// reply sends a short text. A write error means that the client has disconnected.
func reply(w http.ResponseWriter, code int, text string) {
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	var options corev1.PodLogOptions
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, &options); err != nil {
		reply(w, http.StatusBadRequest, err.Error())
		return
	}
	pod, err := k.pods.get(r.PathValue("namespace"), r.PathValue("pod"))
	if err != nil {
		reply(w, http.StatusNotFound, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	out := &flusher{ResponseWriter: w}
	if err := k.pods.readLogs(r.Context(), pod, r.PathValue("container"), &options, out); err != nil && r.Context().Err() == nil {
		if out.written {
			k.log.Error("reading logs", "pod", pod.Name, "error", err)
			return
		}
		reply(w, http.StatusBadRequest, err.Error())
	}
}

// flusher flushes after every write, so that clients that follow a log receive each line
// immediately.
type flusher struct {
	http.ResponseWriter
	written bool
}

func (f *flusher) Write(p []byte) (int, error) {
	f.written = true
	n, err := f.ResponseWriter.Write(p)
	if flush := http.NewResponseController(f.ResponseWriter).Flush(); err == nil {
		err = flush
	}
	return n, err
}

func (k *Kubelet) servePortForward(w http.ResponseWriter, r *http.Request) {
	pod, err := k.pods.get(r.PathValue("namespace"), r.PathValue("pod"))
	if err != nil {
		reply(w, http.StatusNotFound, err.Error())
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		reply(w, http.StatusBadRequest, err.Error())
		return
	}
	portforward.ServePortForward(w, r, forwarder{k.pods, pod}, pod.Name, string(pod.UID), options,
		4*time.Hour, 30*time.Second, portforward.SupportedProtocols)
}

// forwarder forwards one port of a pod.
type forwarder struct {
	pods *pods
	pod  *corev1.Pod
}

// PortForward forwards a connection to the pod's process, or responds for a
// simulated pod.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	addr, real := f.pods.address(f.pod, port)
	if !real {
		return simulatedPort(f.pod, port, stream)
	}
	if addr == "" {
		return fmt.Errorf("nothing listens on port %d of pod %s/%s", port, f.pod.Namespace, f.pod.Name)
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("connecting to port %d of pod %s/%s: %w", port, f.pod.Namespace, f.pod.Name, err)
	}
	return splice(conn, stream)
}

// simulatedPort responds to a request on a port that a simulated container
// declares.
func simulatedPort(pod *corev1.Pod, port int32, stream io.ReadWriteCloser) error {
	if !declares(pod, port) {
		return fmt.Errorf("no container of simulated pod %s/%s declares port %d", pod.Namespace, pod.Name, port)
	}
	buffer := make([]byte, 4096)
	var head strings.Builder
	for !strings.Contains(head.String(), "\r\n\r\n") {
		n, err := stream.Read(buffer)
		head.Write(buffer[:n])
		if err != nil || head.Len() > 1<<16 {
			break
		}
	}
	body := fmt.Sprintf("pod %s/%s is simulated: nothing runs behind port %d\n", pod.Namespace, pod.Name, port)
	_, err := io.WriteString(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+body)
	return err
}

func declares(pod *corev1.Pod, port int32) bool {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.ContainerPort == port {
				return true
			}
		}
	}
	return false
}
