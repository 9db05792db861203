//go:build linux

package confine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fluxkit/flux/pkg/testrun"
)

// controller is a Deployment with the image of a controller.
const controller = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s, labels: {app.kubernetes.io/part-of: flux}}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, app.kubernetes.io/part-of: flux}}
    spec:
      serviceAccountName: %s
      containers:
      - name: manager
        image: x/%s
        args: ["--storage-path=%s", "--insecure-kubeconfig-exec=true"]
        env: [{name: GIT_SSH_COMMAND, value: "touch %s"}, {name: RUNTIME_NAMESPACE, value: flux-system}]
---
`

// TestPrograms applies pods with the images of controllers, and patches the Flux controllers. No process may get
// arguments or environment variables from the repository, and no base may be fetched over SSH.
func TestPrograms(t *testing.T) {
	t.Parallel()
	marker, storage := filepath.Join(t.TempDir(), "marker"), filepath.Join(t.TempDir(), "storage")
	pods := fmt.Sprintf(controller, "kustomize-controller", "default", "default", "kustomize-controller", storage, marker) +
		fmt.Sprintf(controller, "web", "flux-system", "kustomize-controller", "kustomize-controller", storage, marker) +
		fmt.Sprintf(controller, "source-controller-2", "flux-system", "source-controller", "source-controller", storage, marker)
	patch := func(name string, arguments ...string) string {
		lines := "  - target: {kind: Deployment, name: " + name + "}\n    patch: |\n"
		for _, a := range arguments {
			lines += "      - {op: add, path: /spec/template/spec/containers/0/args/-, value: \"" + a + "\"}\n"
		}
		return lines + "      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: GIT_SSH_COMMAND, value: \"touch " + marker + "\"}}\n"
	}
	run, report := reconcile(t, map[string]string{
		cluster + "/flux-system/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
			"resources: [gotk-components.yaml, gotk-sync.yaml]\npatches:\n" +
			patch("kustomize-controller", "--insecure-kubeconfig-exec=true", "--concurrent=7", "--no-remote-bases=false", "--no-such-flag") +
			patch("image-reflector-controller", "--storage-path="+storage),
		cluster + "/pods.yaml": pods,
		cluster + "/base.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec: {interval: 10m0s, path: ./base, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`,
		"base/kustomization.yaml": "resources: ['ssh://git@127.0.0.1:1/base.git?ref=main']\n",
	}, false)
	want := []string{
		"argument --insecure-kubeconfig-exec of kustomize-controller is ignored: it runs programs on this machine",
		"argument --no-such-flag of kustomize-controller is ignored: the sandbox does not support it",
		"argument --storage-path of image-reflector-controller is ignored: set by the sandbox",
	}
	if diff := cmp.Diff(want, report.Ignored); diff != "" {
		t.Error(diff)
	}
	if message := causes(report)["Kustomization/base"]; !strings.Contains(message, "ssh://git@127.0.0.1:1/base.git") {
		t.Errorf("the base over SSH is not a root cause: %+v", report.Causes)
	}
	missing(t, marker, storage)
	client, err := kubernetes.NewForConfig(run.Sandbox.Client.Config)
	if err != nil {
		t.Fatal(err)
	}
	for app, namespace := range map[string]string{"kustomize-controller": "default", "web": "flux-system", "source-controller-2": "flux-system"} {
		list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil || len(list.Items) == 0 {
			t.Fatalf("%s: %v, %d pods", app, err, len(list.Items))
		}
		log, err := client.CoreV1().Pods(namespace).GetLogs(list.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.HasSuffix(string(log), "is simulated by the sandbox\n") {
			t.Errorf("the log of %s: %v\n%s", app, err, log)
		}
	}
	arguments := commandLines(t, run)
	if !strings.Contains(arguments, "--concurrent=7") || strings.Contains(arguments, storage) || strings.Contains(arguments, "kubeconfig-exec") {
		t.Errorf("the arguments of the controllers are:\n%s", arguments)
	}
}

// commandLines returns the arguments of the controllers of a run.
func commandLines(t *testing.T, run *testrun.Run) string {
	t.Helper()
	var lines []string
	for _, pid := range processes(t, run.Sandbox.Dir(), "-controller") {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil { // it may have ended
			lines = append(lines, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return strings.Join(lines, "\n")
}

// processes returns the processes in the sandboxes below a directory whose programs' names contain a text.
func processes(t *testing.T, folder, name string) []int {
	t.Helper()
	directories, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, link := range directories {
		directory, _ := os.Readlink(link) // fails if the process has ended
		program, _ := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err == nil && strings.HasPrefix(directory, folder) && strings.Contains(filepath.Base(program), name) {
			found = append(found, pid)
		}
	}
	return found
}
