package e2e_test

import (
	"os"
	"path/filepath"

	"github.com/fluxkit/flux/pkg/testrun/assert"
)

// removed lists Kustomizations that the head of an upgrade removes. The first one does not prune.
const removed = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: retained, namespace: flux-system}
spec:
  interval: 1h
  path: ./retained
  prune: false
  sourceRef: {kind: GitRepository, name: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: retired, namespace: flux-system}
spec:
  interval: 1h
  path: ./retired
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`

// upgradeFile is the test file of the base of an upgrade, which must not be run.
const upgradeFile = `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: base}
spec:
  steps:
  - expect:
    - absent: {apiVersion: v1, kind: Namespace, name: default}
`

// upgradedFile is the test file of the head. The base contains the image 1.0.0 and the ConfigMaps settings
// and retired. Resources that are ready after the base and do not change became ready first.
// infra-controllers has no dependencies, so it is never blocked and reconciled again.
const upgradedFile = `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: head}
spec:
  steps:
  - name: upgraded
    expect:
    - value: {object: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: worker}, expression: "object.spec.template.spec.containers[0].image.endsWith(':1.1.0')"}
    - pruned: {apiVersion: v1, kind: ConfigMap, namespace: certificates, name: settings}
    - pruned: {apiVersion: v1, kind: ConfigMap, namespace: default, name: retired}
    - exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: retained}
    - ready: {object: {kind: Kustomization, namespace: flux-system, name: infra-controllers}, reconciliations: 1}
    - event: {object: {kind: HelmRelease, namespace: shop, name: shop}, reason: UpgradeSucceeded}
    - order: [{kind: HelmRelease, namespace: certificates, name: certificates}, {kind: Kustomization, namespace: flux-system, name: infra-configs}, {kind: Kustomization, namespace: flux-system, name: apps}]
  - name: a commit on the head
    commit: {files: {apps/base/worker.yaml: null, apps/base/kustomization.yaml: "resources: [shop.yaml]\n"}}
    expect:
    - pruned: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: worker}
    - committed: {file: infrastructure/configs/kustomization.yaml, content: "^resources: .issuer.yaml.\n"}
`

// testUpgrade checks the timeline of a head whose resources become ready.
func testUpgrade(sh *shell) {
	dir := writeLayout(sh, "helm", map[string]string{"clusters/production/removed.yaml": removed, "tests/upgrade.fluxtest.yaml": upgradeFile}, inGit()...)
	commitAs(sh, dir, "base")
	if err := os.Remove(filepath.Join(dir, "clusters/production/removed.yaml")); err != nil {
		sh.t.Fatal(err)
	}
	for name, content := range map[string]string{
		"apps/production/shop.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: shop}\nspec:\n  values: {replicas: 3}\n",
		"apps/base/worker.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec:
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      containers: [{name: worker, image: "registry.example.com/worker:1.1.0"}]
`,
		"infrastructure/configs/kustomization.yaml": "resources: [issuer.yaml]\n",
		"tests/upgrade.fluxtest.yaml":               upgradedFile,
	} {
		writeFile(sh.t, dir, name, content)
	}
	r, _ := runTest(sh, dir, 0, append(charts, "--base=base", "--allow-network")...)
	checkReady(sh.t, r)
	for _, want := range [][4]string{
		{"deleted", "ConfigMap", "settings", ""}, {"restarted", "Deployment", "worker", ""}, {"changed", "HelmRelease", "shop", ""},
		{"released", "HelmRelease", "shop", "revision 2: chart 1.2.0"}, {"changed", "Deployment", "shop", ""},
		{"deleted", "Kustomization", "retained", ""}, {"deleted", "Kustomization", "retired", ""}, {"deleted", "ConfigMap", "retired", ""},
	} {
		if !r.happened(want[0], want[1], want[2], want[3]) {
			sh.t.Errorf("no %v in %+v", want, r.Timeline.Entries)
		}
	}
	for _, e := range r.Timeline.Entries {
		if e.Action == "failed" || e.Action == "recreated" || e.Object.Name == "certificates" || e.Object.Name == "internal" {
			sh.t.Errorf("entry %+v", e)
		}
	}
	if len(r.Orphans) != 1 || r.Orphans[0].Object.Name != "retained" || r.Orphans[0].Owner.Name != "retained" || !r.Orphans[0].OwnerDeleted {
		sh.t.Errorf("orphans %+v, want the one of the Kustomization that does not prune", r.Orphans)
	}
	for _, result := range r.Tests {
		if result.Test != "head" || result.Outcome != string(assert.Passed) {
			sh.t.Errorf("test %+v", result)
		}
	}
	if len(r.Tests) != 9 {
		sh.t.Errorf("%d results: %+v", len(r.Tests), r.Tests)
	}
	comparePrediction(sh, dir, r, 1)
}
