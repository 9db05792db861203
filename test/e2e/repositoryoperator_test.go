package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// resourceSets has a ResourceSet for each origin of inputs. The last one depends on the first one, and its objects contain a
// Kustomization.
const resourceSets = `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: teams, namespace: flux-system}
spec:
  inputs: [{name: red}, {name: blue}]
  resources:
  - {apiVersion: v1, kind: Namespace, metadata: {name: "<< inputs.name >>"}}
  - apiVersion: v1
    kind: Secret
    metadata: {name: registry, namespace: "<< inputs.name >>", annotations: {fluxcd.controlplane.io/copyFrom: flux-system/registry}}
    type: kubernetes.io/dockerconfigjson
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: defaults, namespace: flux-system}
spec: {type: Static, defaultValues: {region: eu}}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: regions, namespace: flux-system}
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: defaults}]
  resources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: region, namespace: default}, data: {region: "<< inputs.region >>"}}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: pulls, namespace: flux-system}
spec: {type: GitHubPullRequest, url: 'https://github.com/acme/app', filter: {limit: 5}}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: all, namespace: flux-system}
spec: {type: OCIArtifactTag, url: 'oci://registry.example.com/app'}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: all, namespace: flux-system}
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: all}]
  resources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "tag-<< inputs.id >>", namespace: default}}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: previews, namespace: flux-system}
spec:
  dependsOn: [{apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSet, name: teams, namespace: flux-system, ready: true}]
  inputsFrom: [{kind: ResourceSetInputProvider, name: pulls}]
  wait: true
  resources:
  - apiVersion: kustomize.toolkit.fluxcd.io/v1
    kind: Kustomization
    metadata: {name: "preview-<< inputs.id >>", namespace: flux-system}
    spec:
      interval: 1h
      prune: true
      path: ./apps
      targetNamespace: red
      namePrefix: "pr<< inputs.id >>-"
      sourceRef: {kind: GitRepository, name: flux-system}
`

const previewed = `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: previews}
spec:
  steps:
  - name: previews
    expect:
    - exists: {apiVersion: v1, kind: Namespace, name: blue}
    - exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: tag-1}
    - exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: tag-120}
    - value: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: region}, expression: object.data.region, equals: eu}
    - exists: {apiVersion: v1, kind: ConfigMap, namespace: red, name: pr12-settings}
    - exists: {apiVersion: v1, kind: ConfigMap, namespace: red, name: pr15-settings}
`

// testOperator runs flux-operator in the sandbox, which renders ResourceSets.
func testOperator(sh *shell) {
	files := instanceFiles("kind: GitRepository, url: 'https://git.example.com/fleet', ref: refs/heads/main")
	files["clusters/production/sets.yaml"] = resourceSets
	files["pulls.yaml"] = "[{id: '12', sha: a1b2c3}, {id: '15', sha: d4e5f6}]"
	files["all.yaml"] = "[" + strings.Repeat("{}, ", 120) + "]"
	files["clusters/production/flux.yaml"] = strings.Replace(files["clusters/production/flux.yaml"], "sync: {", "sync: {pullSecret: git, ", 1) + `  kustomize:
    patches:
    - target: {kind: GitRepository}
      patch: |
        - {op: replace, path: /spec/ref/name, value: refs/heads/release}
        - {op: remove, path: /spec/secretRef}
`
	files["tests/previews.fluxtest.yaml"] = previewed
	dir := writeCommitted(sh, files)

	r, _ := runTest(sh, dir, 0, "--fake-secrets", "--inputs=flux-system/pulls=pulls.yaml", "--inputs=flux-system/all=all.yaml", "tests/previews.fluxtest.yaml")
	if len(r.Generated) != 1 || r.Generated[0].Object.Name != "registry" || !slices.Equal(r.Generated[0].Keys, []string{".dockerconfigjson"}) {
		sh.t.Errorf("generated %+v", r.Generated)
	}
	for _, o := range r.Objects {
		if o.Status != "ready" {
			sh.t.Errorf("%+v", o)
		}
	}
	if r.order("ResourceSet", "teams") > r.order("ResourceSet", "previews") || r.order("Kustomization", "preview-15") == 0 {
		sh.t.Errorf("objects %+v", r.Objects)
	}
	if len(r.NotTested) != 1 || r.NotTested[0].Object.Kind != "FluxInstance" || len(r.Orphans)+len(r.Conflicts) > 0 {
		sh.t.Errorf("not tested %+v, orphans %+v, conflicts %+v", r.NotTested, r.Orphans, r.Conflicts)
	}

	// Without the inputs, with a ResourceSet that the API server rejects, and with multi-tenancy: the default service account
	// may not apply the objects of a Kustomization.
	files["clusters/production/sets.yaml"] = strings.Replace(resourceSets, "name: region,", "name: Region,", 1)
	files["clusters/production/flux.yaml"] += "  cluster: {multitenant: true}\n"
	dir = writeCommitted(sh, files)
	r, _ = runTest(sh, dir, 1, "--fake-secrets")
	if len(r.NotTested) != 3 || r.NotTested[1].Object.Name != "all" || r.NotTested[2].Object.Name != "pulls" || r.NotTested[2].Intended {
		sh.t.Errorf("not tested %+v", r.NotTested)
	}
	if len(r.Causes) != 2 {
		sh.t.Fatalf("causes %+v", r.Causes)
	}
	if c := r.Causes[0]; c.Object.Kind != "Kustomization" || c.Object.Name != "apps" || !strings.Contains(c.Message, "ServiceAccount flux-system/default is forbidden") {
		sh.t.Errorf("cause %+v", c)
	}
	if c := r.Causes[1]; c.Object.Name != "regions" || c.File != "clusters/production/sets.yaml" || !strings.Contains(c.Message, "Region") {
		sh.t.Errorf("cause %+v", c)
	}
}

// withoutOperator returns the shell with programs in another directory, which does not contain flux-operator.
func withoutOperator(sh *shell) *shell {
	sh.t.Helper()
	dir, programs := sh.t.TempDir(), testcluster.Programs(sh.t)
	sh.run("cp", filepath.Join(programs, "flux"), filepath.Join(programs, helper.Program), filepath.Join(testcluster.Bin(), helper.Sandbox), dir)
	from, to := filepath.Join(testcluster.Bin(), "controllers"), filepath.Join(dir, "controllers")
	if err := os.Mkdir(to, 0o700); err != nil {
		sh.t.Fatal(err)
	}
	for _, c := range controllers.All {
		if err := os.Symlink(filepath.Join(from, c.Name), filepath.Join(to, c.Name)); err != nil {
			sh.t.Fatal(err)
		}
	}
	return sh.with("PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"))
}
