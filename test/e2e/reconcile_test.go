package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestReconcileFailing reconciles an object with a wrong password, one that depends on a
// suspended object, and one that does not become healthy.
func TestReconcileFailing(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	f.git.commit("Break everything", map[string]string{"good/settings.yaml": plainMap, "crash/web.yaml": troubled("crash-loop")})
	const source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: locked}\nspec: {interval: 1h, url: \"${URL}\", ref: {branch: main}, secretRef: {name: wrong}}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: wrong}\nstringData: {username: dev, password: guessed}\n"
	failure{name: "reconcile", objects: strings.Join([]string{
		source, gitRepository, applied("locked", "GitRepository", "locked", "good", ""),
		applied("later", "GitRepository", "app", "good", "dependsOn: [{name: locked}]"),
		applied("frozen", "GitRepository", "app", "good", "suspend: true"), applied("thawed", "GitRepository", "app", "good", "dependsOn: [{name: frozen}]"),
		applied("crash", "GitRepository", "app", "crash", "wait: true, timeout: 20s"),
	}, "---\n")}.prepare(f)
	f.shell.run("flux", "wait", "source", "git", "app", "-n", f.namespace)
	const locked = `
    update Secret NS/wrong with credentials that have read access to ` + `http://[^ ]+` + `
    flux reconcile source git locked -n NS
`
	failsWith(f, `
✗ GitRepository NS/locked is not ready: GitOperationFailed: [^\n]*
  Root cause
    http://[^ ]+ rejects the credentials in Secret NS/wrong
  Fix`+locked, "reconcile", "source", "git", "locked", "-n", f.namespace)
	failsWith(f, `
✗ Kustomization NS/locked is not ready: ArtifactFailed: [^\n]*
(◎ [^\n]*
)*✗ Kustomization NS/later is not ready: its dependency Kustomization NS/locked is not ready
✗ 0 of 2 objects reconciled
  Root cause of both
    GitRepository/NS/locked: http://[^ ]+ rejects the credentials in Secret NS/wrong
    GitOperationFailed: [^\n]*
  Fix`+locked, "reconcile", "kustomization", "locked", "later", "-n", f.namespace)
	failsWith(f, `
✗ Kustomization NS/thawed is not ready: DependencyNotReady: [^\n]*
  Root cause
    Kustomization/NS/frozen: it is suspended
  Fix
    flux resume kustomization frozen -n NS
`, "reconcile", "kustomization", "thawed", "-n", f.namespace)
	report := failsWith(f, `
✗ Kustomization NS/crash is not ready: HealthCheckFailed: [^\n]*
  Root cause
    Deployment/NS/web: container web of pod web-[^ ]+ terminated with exit code 1 [^\n]*
    \| [^\n]*it crashes[^\n]*
  Fix
    kubectl -n NS logs web-[^ ]+ -c web( --previous)?
    fix Deployment/NS/web in crash/[^ ]+.yaml, commit and push
    flux reconcile kustomization crash -n NS --with-source
`, "reconcile", "kustomization", "crash", "-n", f.namespace, "-o", "json")
	var outcomes []struct{ Cause finding }
	if err := json.Unmarshal([]byte(report), &outcomes); err != nil || len(outcomes) != 1 || outcomes[0].Cause.Code != "health" {
		f.t.Errorf("the report does not have the root cause: %v\n%s", err, report)
	}
}
