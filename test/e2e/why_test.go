package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TestWhy creates common failures of Flux and checks the answers of flux why.
func TestWhy(t *testing.T) {
	t.Parallel()
	s, address := newRows(t, "--components-extra=image-reflector-controller,image-automation-controller")
	t.Run("cases", func(t *testing.T) {
		s.rows(t, "why-", address, whyCases(), map[string]string{"chart/Chart.yaml": chart, "chart/values.yaml": "from: nowhere\n", "chart/templates/app.yaml": chartTemplate, "stuck/web.yaml": troubled("pending")})
	})
	// Failures of controllers affect every object, so they are last.
	t.Run("controllers", func(t *testing.T) { s.inNamespace(t, "why-controllers").withoutControllers() })
	t.Run("crashing", func(t *testing.T) { s.inNamespace(t, "why-crashing").withCrashingController(address) })
}

// withCrashingController lets a controller end twice while it waits for a Kustomization, as if that made it
// panic. It is available afterwards.
func (s *story) withCrashingController(address string) {
	s.begins(causeRow{name: "crashing", objects: gitRepository + "---\n" + applied("app", "GitRepository", "app", "stuck", "wait: true, timeout: 10m")}, address)
	k, _ := controllers.FindKind("Kustomization")
	s.eventually("the Kustomization to wait for its pods", kube.Of(k), kube.Selection{Namespace: s.namespace, Name: "app"}, func(e kube.Event) bool {
		waiting, _ := controllers.FindCondition(e.Object, "Reconciling")
		return strings.HasPrefix(waiting.Message, "Running health checks")
	})
	for restarts := range 2 {
		s.eventually("the controller to be ready", pods, kube.Selection{Namespace: "flux-system", Labels: "app=kustomize-controller"}, func(e kube.Event) bool {
			ready, _ := controllers.FindCondition(e.Object, "Ready")
			if e.Deleted || ready.Status != "True" || text(e.Object, "status.containerStatuses[0].restartCount") != strconv.Itoa(restarts) {
				return false
			}
			s.quit(text(e.Object, "metadata.uid"))
			return true
		})
	}
	s.eventually("the controller to be available", deployments, kube.Selection{Namespace: "flux-system", Name: "kustomize-controller"}, func(e kube.Event) bool {
		available, _ := controllers.FindCondition(e.Object, "Available")
		progressing, _ := controllers.FindCondition(e.Object, "Progressing")
		return available.Status == "True" && available.LastTransitionTime > progressing.LastTransitionTime && text(e.Object, "status.availableReplicas") == "1"
	})
	causeRow{root: "Deployment/kustomize-controller", code: "controller-crashing", says: []string{"is in a crash loop", "ended with exit code 2 (2 restarts)", "| "}}.found(s)
	s.run("flux", "why", "gitrepository", "app", "-n", s.namespace) // of another controller
}

// quit makes the process of a controller end as after a panic: with a stack and exit code 2.
func (s *story) quit(pod string) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.cluster.Dir, "pods", pod, "process.json"))
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
		s.Fatal(err)
	}
}

// withoutControllers stops one controller and makes another one crash.
func (s *story) withoutControllers() {
	s.run("kubectl", "create", "namespace", s.namespace)
	s.run("kubectl", "-n", "flux-system", "scale", "deployment", "image-reflector-controller", "--replicas=0")
	s.run("kubectl", "-n", "flux-system", "patch", "deployment", "image-automation-controller", "--type=json",
		`-p=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--no-such-flag"},{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`)
	s.run("kubectl", "-n", s.namespace, "apply", "-f", s.write("objects.yaml", fmt.Sprintf(`
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec: {interval: 1h, image: %s/app}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app, namespace: why-suspended}, git: {commit: {author: {email: a@example.com}}}, update: {path: ./}}
`, s.cluster.Env["FLUX_SANDBOX_REGISTRY"])))
	causeRow{ask: []string{}, root: "Deployment/image-reflector-controller", code: "controller-stopped", says: []string{"kubectl -n flux-system scale deployment"}}.found(s)
	causeRow{ask: []string{"imagerepository", "app"}, root: "Deployment/image-reflector-controller", code: "controller-stopped"}.asked(s)
	causeRow{ask: []string{"imageupdateautomation", "app"}, root: "Deployment/image-automation-controller", code: "controller-down", says: []string{"ended with exit code"}}.asked(s)
}
