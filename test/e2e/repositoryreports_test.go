package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/test/support/testsops"
)

// pendingChart is a chart whose pods are never scheduled, so that Helm waits until its timeout.
var pendingChart = map[string]string{
	"charts/pending/Chart.yaml": "apiVersion: v2\nname: pending\nversion: 0.1.0\n",
	"charts/pending/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata:
      labels: {app: "{{ .Release.Name }}"}
      annotations: {sandbox.fluxkit.dev/state: pending}
    spec:
      containers: [{name: app, image: "registry.example.com/app:1.0.0"}]
`,
}

// pendingRelease returns a release of the chart with a timeout. Each release fails once, and is then uninstalled.
func pendingRelease(name, timeout string) string {
	return `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: default}
spec:
  interval: 1h
  timeout: ` + timeout + `
  install: {remediation: {remediateLastFailure: true}}
  chart: {spec: {chart: ./charts/pending, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
`
}

// testTimeout times out while a release is installed. The only root cause in the report is another release, which was
// already uninstalled: Kustomizations that wait for both are not root causes, although they have not finished.
func testTimeout(sh *shell) {
	files := map[string]string{
		"clusters/demo/my-app.yaml": strings.ReplaceAll(removed[:strings.Index(removed, "---")], "retained", "releases") + "  wait: true\n",
		"releases/broken.yaml":      pendingRelease("broken", "5s"),
		"releases/slow.yaml":        pendingRelease("slow", "30m"),
	}
	for name, content := range pendingChart {
		files[name] = content
	}
	dir := writeFleet(sh, files)
	reports := sh.t.TempDir()
	human, junit := filepath.Join(reports, "human"), filepath.Join(reports, "junit.xml")
	r, _ := runTest(sh, dir, 1, "--timeout=2m30s", "-o", "human="+human, "-o", "junit="+junit)
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "broken" || !slices.ContainsFunc(r.Causes[0].Blocks, func(o struct{ Kind, Name string }) bool { return o.Name == "releases" }) {
		sh.t.Errorf("causes %+v", r.Causes)
	}
	if len(r.Orphans) > 0 {
		sh.t.Errorf("what the release is installing is in no inventory: %+v", r.Orphans)
	}
	if !slices.ContainsFunc(r.Unknown, func(line string) bool {
		return strings.HasPrefix(line, "not reconciled in time: HelmRelease/default/slow: ")
	}) {
		sh.t.Errorf("unknown %q", r.Unknown)
	}
	for _, file := range []string{human, junit} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "HelmRelease/default/slow") {
			sh.t.Errorf("%v\n%s", err, text)
		}
		sh.t.Logf("%s", text)
	}
	for _, o := range r.Objects {
		if o.Object.Name == "broken" && !strings.HasPrefix(o.Message, "uninstalled after a failure: Helm install failed ") {
			sh.t.Errorf("the release that was uninstalled: %s", o.Message)
		}
	}
}

// instanceFiles contains the files of a cluster in which a FluxInstance installs Flux, with a different name than bootstrap.
func instanceFiles(sync string) map[string]string {
	return map[string]string{
		"clusters/production/flux.yaml": `apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: flux, namespace: flux-system}
spec:
  distribution: {version: 2.x, registry: ghcr.io/fluxcd}
  sync: {` + sync + `, path: clusters/production}
`,
		"clusters/production/apps.yaml": strings.ReplaceAll(removed[:strings.Index(removed, "---")], "retained", "apps"),
		"apps/settings.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n",
	}
}

// testInstance tests a cluster of flux-operator, which is not installed: its kinds are accepted, and the objects that they
// apply are listed as not tested.
func testInstance(sh *shell) {
	sh = withoutOperator(sh)
	files := instanceFiles("kind: GitRepository, url: 'https://git.example.com/fleet', ref: refs/heads/main")
	files["clusters/production/teams.yaml"] = `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: teams, namespace: flux-system}
spec: {inputs: [{name: a}], resources: [{apiVersion: v1, kind: Namespace, metadata: {name: "<< inputs.name >>"}}]}
`
	dir := writeCommitted(sh, files)
	r, _ := runTest(sh, dir, 2)
	for _, o := range r.Objects {
		if o.Status != "ready" {
			sh.t.Errorf("%+v", o)
		}
	}
	if len(r.Objects) != 3 || len(r.NotTested) != 2 || r.NotTested[0].Object.Kind != "FluxInstance" || !r.NotTested[0].Intended || r.NotTested[1].Object.Kind != "ResourceSet" || r.NotTested[1].Intended {
		sh.t.Errorf("objects %+v, not tested %+v", r.Objects, r.NotTested)
	}
	// Kinds that another program installs are missing, and the source of another kind is reported.
	files = instanceFiles("kind: OCIRepository, name: fleet, url: 'oci://registry.example.com/fleet', ref: latest")
	files["clusters/production/apps.yaml"] = strings.ReplaceAll(files["clusters/production/apps.yaml"], "{kind: GitRepository, name: flux-system}", "{kind: OCIRepository, name: fleet}")
	r, _ = runTest(sh, writeCommitted(sh, files), 1)
	if len(r.Causes) != 1 || r.Causes[0].Object.Kind != "OCIRepository" || r.Causes[0].Object.Name != "fleet" || !strings.Contains(strings.Join(r.Causes[0].Remedies, "\n"), "--map") {
		sh.t.Errorf("causes %+v", r.Causes)
	}
	files["clusters/production/monitor.yaml"] = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: apps, namespace: default}\n"
	r, _ = runTest(sh, writeCommitted(sh, files), 1, "--map=oci://registry.example.com/fleet=.")
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "fleet" || !strings.Contains(r.Causes[0].Message, "ServiceMonitor") {
		sh.t.Fatalf("causes %+v", r.Causes)
	}
	for _, remedy := range []string{"commit the CRD of kind ServiceMonitor of group monitoring.coreos.com", "move the objects of this kind to another Kustomization"} {
		if !strings.Contains(strings.Join(r.Causes[0].Remedies, "\n"), remedy) {
			sh.t.Errorf("remedies %q, want %q", r.Causes[0].Remedies, remedy)
		}
	}
}

// writeCommitted writes a repository without the files of bootstrap.
func writeCommitted(sh *shell, files map[string]string) string {
	sh.t.Helper()
	dir := sh.t.TempDir()
	for name, content := range files {
		writeFile(sh.t, dir, name, content)
	}
	if _, stderr, err := sh.in(dir).try("git", "init", "--quiet"); err != nil {
		sh.t.Fatal(stderr)
	}
	commitAs(sh, dir, "base")
	return dir
}

// testPGP decrypts a Secret with gpg, in a sandbox whose temporary directory is too long for sockets.
func testPGP(sh *shell) {
	keys, private, err := testsops.NewPGP()
	if err != nil {
		sh.t.Fatal(err)
	}
	dir := writeLayout(sh, "tenancy", map[string]string{
		"tenants/production/token.yaml": sealedToken(sh.t, keys), "tests/token.fluxtest.yaml": tokenFile,
		"clusters/production/keys.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: sops-age, namespace: flux-system}\nstringData:\n  team.asc: |\n    " +
			strings.ReplaceAll(private, "\n", "\n    ") + "\n",
	}, given()...)
	r, _ := runTest(sh, dir, 0, tenant)
	checkReady(sh.t, r, [2]string{"Kustomization", "tenants"})
	if len(r.Tests) != 1 || r.Tests[0].Outcome != "passed" {
		sh.t.Errorf("tests %+v", r.Tests)
	}
}
