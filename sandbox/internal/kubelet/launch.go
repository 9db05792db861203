package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/sandbox/internal/access"
	"github.com/fluxkit/flux/sandbox/internal/container"
	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/pki"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// tokenLife is long, because a controller reads its token only once. The token is bound to the pod and becomes invalid when
// the pod is deleted.
const tokenLife = 365 * 24 * time.Hour

// command translates the pod's container into a command line for this machine.
func (w *worker) command(pod *corev1.Pod) (container.Command, error) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name != w.container {
			continue
		}
		return container.Translate(pod, c, w.controller, container.Host{
			Listen: w.k.freeAddress, Service: w.k.services.address, Untrusted: w.k.config.Untrusted,
			Folder: func(path string) string { return volume(w.dir, path) },
		})
	}
	return container.Command{}, fmt.Errorf("pod %s has no container %s", pod.Name, w.container)
}

// volume returns the directory for a path of a controller, below the directory of its pod.
func volume(dir, path string) string { return filepath.Join(dir, "volumes", filepath.Base(path)) }

// environment returns the environment of the controller. It contains no variables of the pod, and only the paths of git and
// gpg from this machine: see Programs.
func (w *worker) environment(pod *corev1.Pod, kubeconfig, namespace, temporary string) []string {
	return append([]string{
		"PATH=" + w.k.folder.Programs(), "HOME=" + filepath.Join(w.dir, "home"), "TMPDIR=" + temporary,
		"TUF_ROOT=" + filepath.Join(temporary, ".sigstore"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=http:https",
		"KUBECONFIG=" + kubeconfig, "HOSTNAME=" + pod.Name, "SANDBOX_NAMESPACE_FILE=" + namespace,
		"RUNTIME_NAMESPACE=" + pod.Namespace, "GOGC=200", "GOMEMLIMIT=1GiB",
	}, w.controller.Env...)
}

// restrict allows a controller only to run its own program, read network settings, and use the directory of its pod. Git is
// not accessible, so kustomize rejects bases in other repositories.
func (w *worker) restrict(program *process.Command) {
	access := isolation.Access{
		Run:   []string{program.Path},
		Read:  []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki", "/etc/localtime", "/usr/share/zoneinfo"},
		Write: []string{w.dir, os.DevNull},
	}
	if w.controller.Name == kustomizer {
		program.Args = append(program.Args, "--no-remote-bases=true")
		allowGnuPG(&access, w.k.folder.Programs())
	}
	program.Restrict = func() error { return isolation.Files(access) }
}

// writeNamespace writes the pod's namespace to the file that the patched controllers read instead of the ServiceAccount
// directory of a container.
func (w *worker) writeNamespace(pod *corev1.Pod) (path string, err error) {
	path = filepath.Join(w.dir, "namespace")
	return path, state.WriteFile(path, []byte(pod.Namespace))
}

func (k *Kubelet) freeAddress(int32) (string, error) {
	port, err := k.ports.Next()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// writeKubeconfig writes a kubeconfig with the identity of the pod's service
// account, so that requests that RBAC forbids fail as in a cluster.
func (w *worker) writeKubeconfig(pod *corev1.Pod, path string) error {
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	token, err := w.k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("getting a token for service account %s/%s: %w", pod.Namespace, account, err)
	}
	user := "system:serviceaccount:" + pod.Namespace + ":" + account
	ca := pki.Dir(w.k.folder.Path("pki")).CA()
	return access.WriteKubeconfig(path, "https://"+w.k.config.Addr("apiserver"), ca, user, token.Status.Token, pod.Namespace)
}
