package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/fluxkit/flux/sandbox/internal/lifecycle"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// TestMain makes the test binary run as flux-sandbox unless it is called with the flags of go test, so that the tests
// cover the code just compiled. It does not depend on the environment, because components do not inherit it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// sandbox is a sandbox under test.
type sandbox struct {
	t      *testing.T
	dir    string
	client kubernetes.Interface
	config *rest.Config
}

func (s *sandbox) command(args ...string) *exec.Cmd {
	return exec.CommandContext(s.t.Context(), os.Args[0], append(args, "--dir", s.dir)...)
}

// run runs flux-sandbox and returns its output and exit code.
func (s *sandbox) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, errs bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (s *sandbox) up() {
	s.t.Helper()
	_, stderr, code := s.run("up", "--controllers=none", "--timeout=3m")
	if code != 0 || !strings.Contains(stderr, "✔ the sandbox is ready after") {
		s.t.Fatalf("up exits %d and prints:\n%s", code, stderr)
	}
	s.connect() // after a restart, the port can be different
}

func (s *sandbox) report() lifecycle.Report {
	s.t.Helper()
	var report lifecycle.Report
	out, stderr, _ := s.run("status", "-o", "json")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		s.t.Fatalf("%v in %s%s", err, out, stderr)
	}
	return report
}

// identities returns the identities of the running processes.
func (s *sandbox) identities() map[string]process.Identity {
	s.t.Helper()
	ids := map[string]process.Identity{}
	for _, p := range s.report().Processes {
		ids[p.Name] = process.Identify(p.PID)
	}
	return ids
}

func (s *sandbox) connect() {
	s.t.Helper()
	folder, err := state.Open(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", folder.Kubeconfig()); err != nil {
		s.t.Fatal(err)
	}
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandbox) deploy(name string, annotations map[string]string) {
	s.t.Helper()
	match := map[string]string{"app": name}
	_, err := s.client.AppsV1().Deployments("default").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: match},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: match, Annotations: annotations},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "registry.example/" + name + ":1", Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
				}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// pod waits until the pod of a Deployment satisfies good.
func (s *sandbox) pod(name string, good func(*corev1.Pod) bool) *corev1.Pod {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	w, err := s.client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{"app": name}.String(),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	var last *corev1.Pod
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			s.t.Fatalf("watching pods: %v", event.Object)
		}
		if last = pod; good(pod) {
			return pod
		}
	}
	s.t.Fatalf("timed out waiting for the pod of %s: %+v", name, last)
	return nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func waitingFor(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == reason {
				return true
			}
		}
		return false
	}
}

func (s *sandbox) log(pod *corev1.Pod) (string, error) {
	stream, err := s.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(s.t.Context())
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(stream)
	return string(text), errors.Join(err, stream.Close())
}

// forward sends a request to a port of a pod through the API server.
func (s *sandbox) forward(pod *corev1.Pod, port int) string {
	s.t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	url := s.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	defer func() {
		close(stop)
		if err := <-ended; err != nil {
			s.t.Errorf("forwarding: %v", err)
		}
	}()
	select {
	case <-ready:
	case err := <-ended:
		s.t.Fatal(err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: 20 * time.Second}).Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}
