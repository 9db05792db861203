package e2e_test

import (
	"bufio"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// testHelm fetches the sources, and tests without their servers.
func testHelm(sh *shell) {
	dir := writeLayout(sh, "helm", nil)
	charts, closed := serveSources(sh.t, dir)
	writeDependent(sh.t, dir, "front", "flux-system", charts)
	closedGit := serveTeam(sh, dir, func(team string) { writeDependent(sh.t, team, "back", "team", charts) })
	closedBucket := serveBucket(sh.t, dir)
	stdout, stderr, err := sh.in(dir).try("flux", "test", "vendor", "-o", "json")
	if err != nil || strings.Count(stdout, `"action": "fetched"`) != 5 || !strings.Contains(stdout, `"kind": "GitRepository"`) {
		sh.t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	closed()
	closedGit()
	closedBucket()
	// source-controller derives the revision of a Bucket from the ETags.
	revision := regexp.MustCompile(`"revision": "(sha256:[0-9a-f]{64})"`).FindStringSubmatch(stdout)
	if revision == nil {
		sh.t.Fatalf("no revision of the Bucket in %s", stdout)
	}
	writeFile(sh.t, dir, "tests/bucket.fluxtest.yaml", `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: bucket}
spec:
  steps:
    - expect:
        - value:
            object: {kind: Bucket, namespace: flux-system, name: assets}
            expression: object.status.artifact.revision
            equals: `+revision[1]+`
`)
	r, _ := runTest(sh, dir, 0, "--vendor", ".fluxtest")
	if len(r.Tests) != 1 || r.Tests[0].Outcome != "passed" {
		sh.t.Errorf("tests %+v", r.Tests)
	}
	checkReady(sh.t, r, [2]string{"HelmRelease", "front"})
	checkReady(sh.t, r, [2]string{"Bucket", "assets"}, [2]string{"Kustomization", "assets"})
	checkReady(sh.t, r, [2]string{"GitRepository", "team"}, [2]string{"HelmRelease", "back"})
	checkReady(sh.t, r, [2]string{"GitRepository", "team"}, [2]string{"Kustomization", "team"})
	checkReady(sh.t, r, [2]string{"OCIRepository", "certificates"}, [2]string{"HelmRelease", "certificates"}, [2]string{"Kustomization", "infra-controllers"},
		[2]string{"Kustomization", "infra-configs"}, [2]string{"HelmRepository", "shop"}, [2]string{"HelmRelease", "shop"}, [2]string{"Kustomization", "apps"})
}

func testMonitoring(sh *shell) {
	r, _ := runTest(sh, writeLayout(sh, "monitoring", nil), 0, charts[0], "--map=https://charts.example.com/shop=charts/logs", "--path=clusters/production", "--revision=base")
	if len(r.Unmatched) != 1 || r.Unmatched[0].URL != "https://charts.example.com/shop" {
		sh.t.Errorf("unmatched %+v", r.Unmatched)
	}
	checkReady(sh.t, r, [2]string{"HelmRelease", "metrics"}, [2]string{"HelmRelease", "logs"}, [2]string{"Kustomization", "monitoring-controllers"}, [2]string{"Kustomization", "monitoring-configs"})
}

const tenant = "--map=ssh://git@git.example.com/dev-team/apps.git=tenant"

func testTenancy(sh *shell) {
	r, text := runTest(sh, writeLayout(sh, "tenancy", map[string]string{"clusters/production/assets.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: assets, namespace: flux-system}
spec: {interval: 1h, endpoint: s3.example.com, bucketName: assets, provider: aws}
`}), 0, tenant, "--map=https://s3.example.com/assets=tenant", "--fake-secrets")
	checkReady(sh.t, r, [2]string{"Bucket", "assets"})
	checkReady(sh.t, r, [2]string{"Kustomization", "tenants"}, [2]string{"GitRepository", "dev-team"}, [2]string{"Kustomization", "dev-team"})
	if len(r.Unmatched) > 0 {
		sh.t.Errorf("unmatched %+v", r.Unmatched)
	}
	if len(r.Generated) != 1 || r.Generated[0].Object.Name != "cluster-vars" || !slices.Equal(r.Generated[0].Keys, []string{"domain"}) {
		sh.t.Errorf("generated %+v, want the variable without a value or default", r.Generated)
	}
	if strings.Contains(text, "fake-") {
		sh.t.Errorf("generated values are in the report:\n%s", text)
	}
}

// testSecrets is the near miss: without generated values, missing Secrets are reported.
func testSecrets(sh *shell) {
	r, _ := runTest(sh, writeLayout(sh, "tenancy", nil), 1, tenant)
	if len(r.Missing) != 2 || len(r.Causes) != 1 || r.Causes[0].Object.Name != "tenants" || len(r.Unmatched) > 0 {
		sh.t.Fatalf("got %+v", r)
	}
	for i, want := range [][2]string{{"cluster-vars", "set --fake-secrets to create it with generated values"}, {"sops-age", "--age-key-file"}} {
		if m := r.Missing[i]; m.Object.Name != want[0] || !strings.Contains(m.Remedy, want[1]) {
			sh.t.Errorf("missing %+v, want %v", m, want)
		}
	}
}

// testImmutable changes the selector of a Deployment, which only fails if the base is deployed.
func testImmutable(sh *shell) {
	dir := writeLayout(sh, "helm", map[string]string{"apps/base/worker.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec:
  selector: {matchLabels: {app: jobs}}
  template:
    metadata: {labels: {app: jobs}}
    spec:
      containers: [{name: worker, image: "registry.example.com/worker:1.0.0"}]
`}, inGit()...)
	r, _ := runTest(sh, dir, 1, append(charts, "--base=base")...)
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "apps" || !strings.Contains(r.Causes[0].Message, "immutable") || !strings.Contains(r.Causes[0].Message, "worker") {
		sh.t.Errorf("causes %+v", r.Causes)
	}
	if len(r.Timeline.NotReady) > 0 || !r.happened("failed", "Kustomization", "apps", "immutable") || r.happened("restarted", "Deployment", "worker", "") {
		sh.t.Errorf("timeline %+v", r.Timeline)
	}
	comparePrediction(sh, dir, r, 1)
}

// testCRD moves a custom resource before the release that creates its definition.
func testCRD(sh *shell) {
	dir := writeLayout(sh, "helm", map[string]string{
		"infrastructure/controllers/kustomization.yaml":    "resources: [certificates.yaml, ../configs/issuer]\n",
		"infrastructure/configs/issuer/issuer.yaml":        "apiVersion: certificates.example.com/v1\nkind: Issuer\nmetadata: {name: internal}\nspec: {server: https://ca.example.com}\n",
		"infrastructure/configs/issuer/kustomization.yaml": "resources: [issuer.yaml]\n",
		"infrastructure/configs/kustomization.yaml":        "resources: [settings.yaml]\n",
	}, inGit()...)
	r, _ := runTest(sh, dir, 1, charts...)
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "infra-controllers" || !strings.Contains(r.Causes[0].Message, "Issuer") {
		sh.t.Errorf("causes %+v", r.Causes)
	}
	// A cluster that has the definition from the base gets the custom resource from its new owner.
	upgraded, _ := runTest(sh, dir, 0, append(charts, "--base=base")...)
	comparePrediction(sh, dir, upgraded, 1)
}

// testInterrupted sends SIGINT while the controllers reconcile. The caller checks that the sandbox is
// removed.
func testInterrupted(sh *shell) {
	cmd := sh.in(writeLayout(sh, "helm", nil)).command(sh.t.Context(), "flux", append([]string{"test"}, charts...)...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		sh.t.Fatal(err)
	}
	lines, started := []string{}, false
	for r := bufio.NewScanner(stderr); r.Scan(); lines = append(lines, r.Text()) {
		if strings.Contains(r.Text(), "reconciling") && !started {
			started = true
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				sh.t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); !started || exitCode(err) != 130 {
		sh.t.Errorf("interrupted while reconciling (%t), flux test ends with %v:\n%s", started, err, strings.Join(lines, "\n"))
	}
}
