package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
)

// TestCause breaks dependencies of commands that wait, and checks the end of their
// output: the failure, the root cause and the remedies.
func TestCause(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	t.Run("bootstrap", func(t *testing.T) { s.inNamespace(t, "flux-system").bootstrapMissingFolder() })
	t.Run("install", func(t *testing.T) { s.inNamespace(t, "flux-system").installCrashingController() })
	s.run("flux", "install")
	closed := s.lock()
	s.run("git", "remote", "set-url", "origin", s.url)
	s.commit("Break everything", map[string]string{"good/settings.yaml": plainMap, "crash/web.yaml": troubled("crash-loop")})
	t.Run("reconcile", func(t *testing.T) { s.inNamespace(t, "cause-reconcile").reconcileFailing(closed) })
	t.Run("create", func(t *testing.T) { s.inNamespace(t, "cause-create").createFailing(closed) })
	t.Run("wait", func(t *testing.T) { s.inNamespace(t, "cause-wait").waitWithoutController(closed) })
}

// inNamespace returns the story in another namespace.
func (s *story) inNamespace(t *testing.T, namespace string) *story {
	part := *s
	part.T, part.namespace = t, namespace
	return &part
}

// fails runs flux, which must exit with 1 and end its output with the given lines,
// each a regular expression.
func (s *story) fails(end string, args ...string) string {
	s.Helper()
	stdout, stderr, err := s.try("flux", args...)
	if err == nil {
		s.Fatalf("flux %s succeeds:\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
	pattern := `(?s)(^|\n)` + strings.ReplaceAll(strings.TrimPrefix(end, "\n"), "NS", s.namespace) + `$`
	if !regexp.MustCompile(pattern).MatchString(stderr) {
		s.Errorf("flux %s does not end with\n%s\nbut prints\n%s", strings.Join(args, " "), end, stderr)
	}
	return stdout
}

// bootstrapMissingFolder bootstraps a folder that refers to a folder that does not exist.
func (s *story) bootstrapMissingFolder() {
	s.commit("Want the apps", map[string]string{"clusters/test/kustomization.yaml": "resources: [flux-system, ../../apps]\n"})
	s.fails(`
✗ Kustomization NS/NS is not ready: BuildFailed: kustomize build failed: [^\n]*open apps: no such file or directory[^\n]*
  Root cause
    the manifests do not build
  Fix
    fix it in the repository, commit and push, then run the command again
    see it in a clone of the source: flux build kustomization flux-system -n NS --path ./clusters/test
    flux reconcile kustomization flux-system -n NS --with-source
`, "bootstrap", "git", "--url="+s.url, "--allow-insecure-http", "--branch=main", "--path=clusters/test",
		"--username=dev", "--password=not-checked", "--token-auth", "--silent")

	// Apply the remedy.
	s.commit("Bring the apps", map[string]string{"apps/settings.yaml": strings.Replace(plainMap, "settings}", "settings, namespace: default}", 1), "apps/kustomization.yaml": "resources: [settings.yaml]\n"})
	s.bootstrap()
	s.run("flux", "uninstall", "--silent")
}

// installCrashingController installs a controller with an unknown flag.
func (s *story) installCrashingController() {
	manifests := strings.Split(s.run("flux", "install", "--export"), "\n---\n")
	for i, m := range manifests {
		if strings.Contains(m, "kind: Deployment") && strings.Contains(m, "name: kustomize-controller") {
			manifests[i] = strings.Replace(m, "- --log-level=info\n", "- --log-level=info\n        - --no-such-flag\n", 1)
		}
	}
	file := s.write("flux.yaml", strings.Join(manifests, "\n---\n"))
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "--no-such-flag") {
		s.Fatal("the manifests do not have the expected content")
	}
	s.fails(`
✗ kustomize-controller: deployment not ready: container manager of pod kustomize-controller-[^ ]+ ended with exit code 2 \(\d+ restarts\)
  Root cause
(    \| [^\n]*\n)*    \| unknown flag: --no-such-flag
  Fix
    kubectl -n NS describe pods -l app=kustomize-controller
`, "install", "--manifests", file)
}

// reconcileFailing reconciles an object with a wrong password, one that depends on a
// suspended object, and one that does not become healthy.
func (s *story) reconcileFailing(address string) {
	const source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: locked}\nspec: {interval: 1h, url: \"${URL}\", ref: {branch: main}, secretRef: {name: wrong}}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: wrong}\nstringData: {username: dev, password: guessed}\n"
	s.begins(causeRow{name: "reconcile", objects: strings.Join([]string{
		source, gitRepository, applied("locked", "GitRepository", "locked", "good", ""),
		applied("later", "GitRepository", "app", "good", "dependsOn: [{name: locked}]"),
		applied("frozen", "GitRepository", "app", "good", "suspend: true"), applied("thawed", "GitRepository", "app", "good", "dependsOn: [{name: frozen}]"),
		applied("crash", "GitRepository", "app", "crash", "wait: true, timeout: 20s"),
	}, "---\n")}, address)
	s.run("flux", "wait", "source", "git", "app", "-n", s.namespace)
	const locked = `
    put credentials that may read ` + `http://[^ ]+` + ` into Secret NS/wrong
    flux reconcile source git locked -n NS
`
	s.fails(`
✗ GitRepository NS/locked is not ready: GitOperationFailed: [^\n]*
  Root cause
    http://[^ ]+ rejects the credentials in Secret NS/wrong
  Fix`+locked, "reconcile", "source", "git", "locked", "-n", s.namespace)
	s.fails(`
✗ Kustomization NS/locked is not ready: ArtifactFailed: [^\n]*
✗ Kustomization NS/later is not ready: its dependency Kustomization NS/locked is not
  Root cause of both
    GitRepository/NS/locked: http://[^ ]+ rejects the credentials in Secret NS/wrong
    GitOperationFailed: [^\n]*
  Fix`+locked, "reconcile", "kustomization", "locked", "later", "-n", s.namespace)
	s.fails(`
✗ Kustomization NS/thawed is not ready: DependencyNotReady: [^\n]*
  Root cause
    Kustomization/NS/frozen: it is suspended
  Fix
    flux resume kustomization frozen -n NS
`, "reconcile", "kustomization", "thawed", "-n", s.namespace)
	report := s.fails(`
✗ Kustomization NS/crash is not ready: HealthCheckFailed: [^\n]*
  Root cause
    Deployment/NS/web: container web of pod web-[^ ]+ ended with exit code 1 [^\n]*
    \| [^\n]*it crashes[^\n]*
  Fix
    fix the workload in the source, commit and push
    flux reconcile kustomization crash -n NS --with-source
`, "reconcile", "kustomization", "crash", "-n", s.namespace, "-o", "json")
	var outcomes []struct{ Cause finding }
	if err := json.Unmarshal([]byte(report), &outcomes); err != nil || len(outcomes) != 1 || outcomes[0].Cause.Code != "health" {
		s.Errorf("the report does not have the root cause: %v\n%s", err, report)
	}
}

// createFailing creates objects that refer to a source and a chart that do not exist.
func (s *story) createFailing(address string) {
	s.begins(causeRow{name: "create", objects: gitRepository}, address)
	s.run("flux", "wait", "source", "git", "app", "-n", s.namespace)
	s.fails(`
✗ Kustomization NS/app is not ready: ArtifactFailed: [^\n]*"gone" not found
  Root cause
    GitRepository/NS/gone: it does not exist
  Fix
    correct the reference to it, or create it: flux create source git gone -n NS --url=<url> --branch=<branch>
`, "create", "kustomization", "app", "--source=GitRepository/gone", "--path=./good", "--prune", "--interval=1h", "-n", s.namespace)
	s.fails(`
✗ timed out after 15s waiting for HelmRelease/NS/app to become ready: SourceNotReady: [^\n]*
  Root cause
    HelmChart/NS/NS-app: chart not found: [^\n]*
    InvalidChartReference: [^\n]*
  Fix
    correct .spec.chart.spec.chart and .spec.chart.spec.version of the HelmRelease of HelmChart/NS/NS-app, or publish the chart
    flux reconcile source chart NS-app -n NS --with-source
`, "create", "helmrelease", "app", "--source=GitRepository/app", "--chart=./gone", "--interval=1h", "--timeout=15s", "-n", s.namespace)
}

// waitWithoutController waits while kustomize-controller crashes.
func (s *story) waitWithoutController(address string) {
	s.run("kubectl", "-n", "flux-system", "patch", "deployment", "kustomize-controller", "--type=json",
		`-p=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--no-such-flag"},{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`)
	s.begins(causeRow{name: "wait", objects: gitRepository + "---\n" + applied("app", "GitRepository", "app", "good", "")}, address)
	s.eventually("the controller to crash", pods, kube.Selection{Namespace: "flux-system", Labels: "app=kustomize-controller"}, func(e kube.Event) bool {
		return text(e.Object, "status.containerStatuses[0].lastState.terminated.exitCode") == "2" || text(e.Object, "status.containerStatuses[0].state.terminated.exitCode") == "2"
	})
	causeRow{root: "Deployment/kustomize-controller", code: "controller-down", says: []string{"ended with exit code 2"}}.found(s)
	s.fails(`
✗ timed out after 10s waiting for Kustomization/NS/app to become ready: waiting to be reconciled
  Root cause
    Deployment/flux-system/kustomize-controller: the kustomize-controller is not running: container manager of pod kustomize-controller-[^ ]+ ended with exit code 2 [^\n]*
(    \| [^\n]*\n)*    \| unknown flag: --no-such-flag
  Fix
    kubectl -n flux-system describe pods -l app=kustomize-controller
    if the last change of its template is the cause, undo it: kubectl -n flux-system rollout undo deployment kustomize-controller
`, "wait", "kustomization", "app", "-n", s.namespace, "--timeout=10s")

	// Apply the remedy.
	s.run("kubectl", "-n", "flux-system", "rollout", "undo", "deployment", "kustomize-controller")
	s.run("flux", "wait", "kustomization", "app", "-n", s.namespace)
}

const gitRepository = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
`

// applied returns a Kustomization that applies a folder of a source.
func applied(name, kind, source, path, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s}
spec: {interval: 1h, retryInterval: 1h, path: ./%s, prune: true, targetNamespace: "${NS}", sourceRef: {kind: %s, name: %s}%s}
`, name, path, kind, source, more)
}
