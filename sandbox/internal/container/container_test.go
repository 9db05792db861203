package container

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/sandbox/internal/controller"
)

// translate returns the command of a controller container in flux-system. The host returns addresses that contain the
// arguments of the call.
func translate(t *testing.T, name string, untrusted bool, c corev1.Container) Command {
	t.Helper()
	program, ok := controller.Get(name)
	if !ok {
		t.Fatalf("no controller %s", name)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "source-1"}}
	command, err := Translate(pod, &c, program, Host{
		Listen: func(port int32) (string, error) { return fmt.Sprintf("127.0.0.1:1%d", port), nil },
		Service: func(ns, name string, port int32) (string, error) {
			return fmt.Sprintf("<%s/%s:%d>", ns, name, port), nil
		},
		Folder:    func(path string) string { return "/pod" + path },
		Untrusted: untrusted,
	})
	if err != nil {
		t.Fatal(err)
	}
	return command
}

func TestTranslateFluxContainer(t *testing.T) {
	t.Parallel()
	got := translate(t, "source-controller", true, corev1.Container{Args: []string{
		"--events-addr=http://notification-controller.$(RUNTIME_NAMESPACE).svc.cluster.local./",
		"--storage-path=/data", "--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local.",
		"--enable-leader-election", "--metrics-addr", ":8081", "--watch-all-namespaces=true", "--concurrent", "10",
		"--feature-gates=ExternalArtifact=true", "--watch-label-selector=!sharding.fluxcd.io/key", "--requeue-dependency=5s",
	}})
	want := Command{
		Args: []string{
			"--events-addr=http://<flux-system/notification-controller:80>/",
			"--storage-adv-addr=<flux-system/source-controller:80>", "--enable-leader-election", "--watch-all-namespaces=true",
			"--concurrent=10", "--feature-gates=ExternalArtifact=true", "--watch-label-selector=!sharding.fluxcd.io/key",
			"--requeue-dependency=5s", "--storage-path=/pod/data",
			"--metrics-addr=127.0.0.1:18081", "--health-addr=127.0.0.1:19440", "--storage-addr=127.0.0.1:19090",
		},
		Ports: map[int32]string{8081: "127.0.0.1:18081", 9440: "127.0.0.1:19440", 9090: "127.0.0.1:19090"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHostileArguments passes arguments that read, write, execute or connect to something on this machine. None of
// them, and no environment variables, may be passed to the controller.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	const bySandbox = " is ignored: set by the sandbox"
	for arg, ignored := range map[string]string{
		"--storage-path=/root":                    "argument --storage-path of source-controller" + bySandbox,
		"--storage-path=/data/../root":            "argument --storage-path of source-controller" + bySandbox,
		"--storage-addr=0.0.0.0:9090":             "",
		"--storage-adv-addr=evil.example:80":      `argument --storage-adv-addr of source-controller is ignored: the sandbox does not support the value "evil.example:80"`,
		"--events-addr=http://169.254.169.254/":   `argument --events-addr of source-controller is ignored: the sandbox does not support the value "http://169.254.169.254/"`,
		"--insecure-kubeconfig-exec":              "argument --insecure-kubeconfig-exec of source-controller is ignored: it runs programs on this machine",
		"--insecure-kubeconfig-exec=true":         "argument --insecure-kubeconfig-exec of source-controller is ignored: it runs programs on this machine",
		"--oom-watch-max-memory-path=/etc/passwd": "argument --oom-watch-max-memory-path of source-controller is ignored: it reads a file on this machine",
		"--kubeconfig=/root/.kube/config":         "argument --kubeconfig of source-controller is ignored: the sandbox does not support it",
		"--no-such-flag":                          "argument --no-such-flag of source-controller is ignored: the sandbox does not support it",
		"--concurrent=$(HOME)":                    `argument --concurrent of source-controller is ignored: the sandbox does not support the value "$(HOME)"`,
		"--concurrent=1\n":                        `argument --concurrent of source-controller is ignored: the sandbox does not support the value "1\n"`,
		"-v=9":                                    `argument "-v=9" of source-controller is ignored: not a flag`,
		"/etc/passwd":                             `argument "/etc/passwd" of source-controller is ignored: not a flag`,
		"--":                                      `argument "--" of source-controller is ignored: not a flag`,
		"--a b=c":                                 `argument "--a b=c" of source-controller is ignored: not a flag`,
		"--default-service-account=../x":          `argument --default-service-account of source-controller is ignored: the sandbox does not support the value "../x"`,
		"--watch-label-selector=a=b;touch /tmp/x": `argument --watch-label-selector of source-controller is ignored: the sandbox does not support the value "a=b;touch /tmp/x"`,
	} {
		got := translate(t, "source-controller", true, corev1.Container{Args: []string{arg}, Env: []corev1.EnvVar{{Name: "GIT_SSH_COMMAND", Value: "touch /tmp/x"}}})
		want := []string{
			"--storage-path=/pod/data", "--metrics-addr=127.0.0.1:18080", "--health-addr=127.0.0.1:19440", "--storage-addr=127.0.0.1:19090",
		}
		if diff := cmp.Diff(want, got.Args); diff != "" {
			t.Errorf("%s: %s", arg, diff)
		}
		var reasons []string
		if ignored != "" {
			reasons = []string{ignored}
		}
		if diff := cmp.Diff(reasons, got.Ignored); diff != "" {
			t.Errorf("%s: %s", arg, diff)
		}
	}
}

// TestUnknownArguments checks that in a trusted sandbox, unknown arguments make a controller fail, as in a cluster.
// They are passed without a value, so they have no other effect.
func TestUnknownArguments(t *testing.T) {
	t.Parallel()
	got := translate(t, "helm-controller", false, corev1.Container{Args: []string{"--no-such-flag=/etc/passwd", "--insecure-kubeconfig-exec=true"}})
	want := Command{
		Args:    []string{"--no-such-flag", "--metrics-addr=127.0.0.1:18080", "--health-addr=127.0.0.1:19440"},
		Ports:   map[int32]string{8080: "127.0.0.1:18080", 9440: "127.0.0.1:19440"},
		Ignored: []string{"argument --insecure-kubeconfig-exec of helm-controller is ignored: it runs programs on this machine"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
