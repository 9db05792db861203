package e2e_test

import (
	"fmt"
	"testing"
)

// TestWhy creates common failures of Flux and checks the answers of flux why.
func TestWhy(t *testing.T) {
	t.Parallel()
	s, address := newRows(t, "--components-extra=image-reflector-controller,image-automation-controller")
	t.Run("cases", func(t *testing.T) {
		s.rows(t, "why-", address, whyCases(), map[string]string{"chart/Chart.yaml": chart, "chart/values.yaml": "from: nowhere\n", "chart/templates/app.yaml": chartTemplate})
	})
	// Failures of controllers affect every object, so they are last.
	t.Run("controllers", func(t *testing.T) { s.inNamespace(t, "why-controllers").withoutControllers() })
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
