package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// whyCrashingController ends a controller twice while it waits for a Kustomization, as if it had panicked.
// It is available afterwards.
func whyCrashingController(f *fixture) {
	failure{name: "crashing", objects: gitRepository + "---\n" + applied("app", "GitRepository", "app", "stuck", "wait: true, timeout: 10m")}.prepare(f)
	f.eventually("the Kustomization to wait for its pods", resource(f.t, "Kustomization"), kube.Selection{Namespace: f.namespace, Name: "app"}, func(e kube.Event) bool {
		waiting, _ := controllers.FindCondition(e.Object, "Reconciling")
		return strings.HasPrefix(waiting.Message, "Running health checks")
	})
	ended := map[string]bool{}
	for range 2 {
		f.eventually("the controller to be ready", pods, kube.Selection{Namespace: "flux-system", Labels: "app=kustomize-controller"}, func(e kube.Event) bool {
			ready, _ := controllers.FindCondition(e.Object, "Ready")
			process := text(e.Object, "status.containerStatuses[0].containerID")
			if e.Deleted || ready.Status != "True" || ended[process] {
				return false
			}
			ended[process] = true
			quitController(f, text(e.Object, "metadata.uid"))
			return true
		})
	}
	f.eventually("the controller to be available", deployments, kube.Selection{Namespace: "flux-system", Name: "kustomize-controller"}, func(e kube.Event) bool {
		available, _ := controllers.FindCondition(e.Object, "Available")
		progressing, _ := controllers.FindCondition(e.Object, "Progressing")
		return available.Status == "True" && available.LastTransitionTime > progressing.LastTransitionTime && text(e.Object, "status.availableReplicas") == "1"
	})
	failure{root: "Deployment/kustomize-controller", code: "controller-crashing", says: []string{"is in a crash loop", "terminated with exit code 2 (", "| "}}.find(f)
	f.shell.run("flux", "why", "gitrepository", "app", "-n", f.namespace) // of another controller
}

// quitController ends the process of a controller like a panic: with a stack trace and exit code 2.
func quitController(f *fixture, pod string) {
	f.t.Helper()
	folder, _, _ := strings.Cut(pod, "-") // of the UID
	text, err := os.ReadFile(filepath.Join(f.cluster.Dir, "pods", folder, "process.json"))
	var process struct{ PID int }
	if err == nil {
		err = json.Unmarshal(text, &process)
	}
	if err == nil && process.PID == 0 {
		err = errors.New("no process")
	}
	if err == nil {
		err = syscall.Kill(process.PID, syscall.SIGQUIT)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// whyStoppedController stops one controller and makes another one crash.
func whyStoppedController(f *fixture) {
	f.shell.run("kubectl", "create", "namespace", f.namespace)
	f.shell.run("kubectl", "-n", "flux-system", "scale", "deployment", "image-reflector-controller", "--replicas=0")
	f.shell.run("kubectl", "-n", "flux-system", "patch", "deployment", "image-automation-controller", "--type=json",
		`-p=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--no-such-flag"},{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`)
	f.shell.run("kubectl", "-n", f.namespace, "apply", "-f", tempFile(f.t, "objects.yaml", fmt.Sprintf(`
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec: {interval: 1h, image: %s/app}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app, namespace: why-suspended}, git: {commit: {author: {email: a@example.com}}}, update: {path: ./}}
`, f.cluster.Env["FLUX_SANDBOX_REGISTRY"])))
	failure{args: []string{}, root: "Deployment/image-reflector-controller", code: "controller-stopped", says: []string{"kubectl -n flux-system scale deployment"}}.find(f)
	failure{args: []string{"imagerepository", "app"}, root: "Deployment/image-reflector-controller", code: "controller-stopped"}.check(f)
	failure{args: []string{"imageupdateautomation", "app"}, root: "Deployment/image-automation-controller", code: "controller-down", says: []string{"terminated with exit code"}}.check(f)
}
