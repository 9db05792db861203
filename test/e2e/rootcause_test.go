package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
)

// TestRootCause breaks dependencies of commands that wait for their controllers, and checks the end of their
// output: the failure, the root cause and the fixes.
func TestRootCause(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	t.Run("bootstrap", func(t *testing.T) { bootstrapMissingDirectory(f.as(t)) })
	t.Run("install", func(t *testing.T) { installCrashingController(f.as(t)) })
	f.shell.run("flux", "install", "--components-extra=image-reflector-controller,image-automation-controller")
	f.git.commit("Run something", map[string]string{"good/settings.yaml": plainMap, "stuck/web.yaml": troubled("pending")})
	t.Run("wait", func(t *testing.T) { waitWithoutController(f.as(t).in("cause-wait")) })
	t.Run("stopped", func(t *testing.T) { whyStoppedController(f.as(t).in("cause-stopped")) })
	t.Run("crashing", func(t *testing.T) { whyCrashingController(f.as(t).in("cause-crashing")) })
}

// failsWith runs flux, which must exit with 1 and end its output with the given lines,
// each a regular expression.
func failsWith(f *fixture, end string, args ...string) string {
	f.t.Helper()
	stdout, stderr, err := f.shell.try("flux", args...)
	if err == nil {
		f.t.Fatalf("flux %s succeeds:\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
	pattern := `(?s)(^|\n)` + strings.ReplaceAll(strings.TrimPrefix(end, "\n"), "NS", f.namespace) + `$`
	if !regexp.MustCompile(pattern).MatchString(stderr) {
		f.t.Errorf("flux %s does not end with\n%s\nbut prints\n%s", strings.Join(args, " "), end, stderr)
	}
	return stdout
}

// bootstrapMissingDirectory bootstraps a directory that refers to a missing directory.
func bootstrapMissingDirectory(f *fixture) {
	f.git.commit("Want the apps", map[string]string{"clusters/test/kustomization.yaml": "resources: [flux-system, ../../apps]\n"})
	failsWith(f, `
✗ Kustomization NS/NS is not ready: BuildFailed: kustomize build failed: [^\n]*open apps: no such file or directory[^\n]*
  Root cause
    a kustomization.yaml below "./clusters/test" lists ../../apps, which does not exist
  Fix
    fix it in the repository, commit and push, then run the command again
    add ../../apps, or remove it from the kustomization.yaml, commit and push
    flux reconcile kustomization flux-system -n NS --with-source
`, bootstrapArgs(f.git)...)

	// Apply the remedy.
	f.git.commit("Bring the apps", map[string]string{"apps/settings.yaml": strings.Replace(plainMap, "settings}", "settings, namespace: default}", 1), "apps/kustomization.yaml": "resources: [settings.yaml]\n"})
	bootstrap(f)
	f.shell.run("flux", "uninstall", "--silent")
}

// installCrashingController installs a controller with an unknown flag.
func installCrashingController(f *fixture) {
	manifests := strings.Split(f.shell.run("flux", "install", "--export"), "\n---\n")
	for i, m := range manifests {
		if strings.Contains(m, "kind: Deployment") && strings.Contains(m, "name: kustomize-controller") {
			manifests[i] = strings.Replace(m, "- --log-level=info\n", "- --log-level=info\n        - --no-such-flag\n", 1)
		}
	}
	file := tempFile(f.t, "flux.yaml", strings.Join(manifests, "\n---\n"))
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "--no-such-flag") {
		f.t.Fatal("the manifests do not have the expected content")
	}
	failsWith(f, `
✗ kustomize-controller: deployment not ready: container manager of pod kustomize-controller-[^ ]+ terminated with exit code 2 \(\d+ restarts\)
  Root cause
(    \| [^\n]*\n)*    \| unknown flag: --no-such-flag
  Fix
    kubectl -n NS describe pods -l app=kustomize-controller
`, "install", "--manifests", file)
}

// waitWithoutController waits while kustomize-controller crashes.
func waitWithoutController(f *fixture) {
	f.shell.run("kubectl", "-n", "flux-system", "patch", "deployment", "kustomize-controller", "--type=json",
		`-p=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--no-such-flag"},{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`)
	failure{name: "wait", objects: gitRepository + "---\n" + applied("app", "GitRepository", "app", "good", "")}.prepare(f)
	f.eventually("the controller to crash", pods, kube.Selection{Namespace: "flux-system", Labels: "app=kustomize-controller"}, func(e kube.Event) bool {
		return text(e.Object, "status.containerStatuses[0].lastState.terminated.exitCode") == "2" || text(e.Object, "status.containerStatuses[0].state.terminated.exitCode") == "2"
	})
	failure{root: "Deployment/kustomize-controller", code: "controller-down", says: []string{"terminated with exit code 2"}}.find(f)
	failsWith(f, `
✗ timed out after 10s waiting for Kustomization/NS/app to become ready: waiting to be reconciled
  Root cause
    Deployment/flux-system/kustomize-controller: the kustomize-controller is not running: container manager of pod kustomize-controller-[^ ]+ terminated with exit code 2 [^\n]*
(    \| [^\n]*\n)*    \| unknown flag: --no-such-flag
  Fix
    kubectl -n flux-system describe pods -l app=kustomize-controller
    if the last change to the pod template is the cause, roll it back: kubectl -n flux-system rollout undo deployment kustomize-controller
`, "wait", "kustomization", "app", "-n", f.namespace, "--timeout=10s")

	// Apply the remedy.
	f.shell.run("kubectl", "-n", "flux-system", "rollout", "undo", "deployment", "kustomize-controller")
	f.shell.run("flux", "wait", "kustomization", "app", "-n", f.namespace)
}
