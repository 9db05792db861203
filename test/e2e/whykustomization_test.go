package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhyKustomizations(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingKustomizations(), false)
}

func TestNightlyWhyKustomizations(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingKustomizations(), true)
}

// failingKustomizations lists Kustomizations whose manifests, permissions or objects fail.
func failingKustomizations() []failure {
	return slices.Concat(withoutReconcile(slices.Concat(kustomizationFailures(), applyFailures())),
		rejections(), namespaceRejections(), resemblingKustomizations())
}

func kustomizationFailures() []failure {
	yes := map[string]string{"settings.yaml": plainMap}
	return []failure{
		{
			name: "suspended", files: yes, root: "Kustomization/app", code: "suspended", says: []string{"frozen for the release"},
			then: func(f *fixture) {
				f.shell.run("flux", "suspend", "kustomization", "app", "-n", f.namespace, "--reason=frozen for the release")
			},
		},
		{name: "build", files: map[string]string{"kustomization.yaml": "resources: [gone.yaml]\n"}, root: "Kustomization/app", code: "build", says: []string{"add gone.yaml, or remove it from cases/build/kustomization.yaml, commit and push"}},
		{name: "path", root: "Kustomization/app", code: "build-path", says: []string{`.spec.path "cases/path" does not exist in the source`}},
		{
			name: "dependency", nightly: true, files: yes, fails: map[string]string{"flux resume kustomization app -n ${NS}": "BuildFailed"}, args: []string{"kustomization", "later"}, root: "Kustomization/app", code: "suspended",
			objects: `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, suspend: true, path: ./, prune: true, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: later}
spec: {interval: 1h, path: "${PATH}", prune: true, targetNamespace: "${NS}", dependsOn: [{name: app}], sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
`,
		},
		{
			name: "cycle", files: yes, fails: map[string]string{"flux deps kustomization app -n ${NS}": "circular dependency"}, root: "Kustomization/app", code: "cycle", says: []string{"circular dependency: Kustomization/${NS}/app"},
			objects: `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, path: "${PATH}", prune: true, dependsOn: [{name: later}], sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: later}
spec: {interval: 1h, path: "${PATH}", prune: true, dependsOn: [{name: app}], sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
`,
		},
		{
			name: "substitution", files: yes, root: "Kustomization/app", code: "substitution", says: []string{"substituteFrom"},
			objects: kustomizationWith(`postBuild: {substituteFrom: [{kind: ConfigMap, name: gone}]}`),
		},
		{
			name: "decryption", root: "Kustomization/app", code: "decryption", says: []string{".spec.decryption is not set"},
			files: map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: locked}\ndata: {a: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\"}\nsops:\n  mac: ENC[AES256_GCM,data:AAAA]\n  version: 3.10.0\n"},
		},
		{
			name: "old", nightly: true, root: "Kustomization/app", code: "api-missing", says: []string{"set apiVersion of HorizontalPodAutoscaler to autoscaling/v2 or autoscaling/v1 in cases/old/deep/scaler.yaml"},
			files: map[string]string{"deep/scaler.yaml": "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: web}}\n"},
		},
		{
			name: "deadlock", root: "Kustomization/app", code: "api-missing", says: []string{"move the objects of kind Widget to another Kustomization", "if the chart of HelmRelease/${NS}/op installs the CRD"},
			files: map[string]string{"all.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: op}
spec: {interval: 1h, chart: {spec: {chart: op, version: 1.x, sourceRef: {kind: HelmRepository, name: none}}}}
---
apiVersion: deadlock.example.com/v1
kind: Widget
metadata: {name: w}
`},
		},
		{
			name: "old-flux", root: "Kustomization/app", code: "api-missing", says: []string{"flux migrate -f cases/old-flux/deep"},
			fails: map[string]string{"flux migrate -f ${PATH}/deep": "GitRepository source.toolkit.fluxcd.io/v1alpha1 → source.toolkit.fluxcd.io/v1\n✗ no terminal to prompt on"},
			files: map[string]string{"deep/source.yaml": "apiVersion: source.toolkit.fluxcd.io/v1alpha1\nkind: GitRepository\nmetadata: {name: old}\nspec: {interval: 1h, url: \"http://127.0.0.1:1/x\"}\n"},
		},
	}
}

// applyFailures lists Kustomizations that fail to apply their manifests, or whose objects do not become healthy.
func applyFailures() []failure {
	yes := map[string]string{"settings.yaml": plainMap}
	return []failure{
		{
			name: "admission", files: yes, root: "Kustomization/app", code: "admission", says: []string{"policy ${NS}"},
			objects: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ${NS}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  matchConditions: [{name: here, expression: "object.metadata.namespace == '${NS}' && object.metadata.name == 'settings'"}]
  validations: [{expression: "false", message: "no settings here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ${NS}}
spec: {policyName: ${NS}, validationActions: [Deny]}
---
${DEFAULT}`,
		},
		{
			name: "permission", files: yes, root: "Kustomization/app", code: "permission", says: []string{"ServiceAccount ${NS}/weak"},
			objects: kustomizationWith("serviceAccountName: weak") + "\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: weak}\n",
		},
		{
			name: "quota", root: "Kustomization/app", code: "quota", says: []string{"raise ResourceQuota few of namespace ${NS}"},
			files: map[string]string{"quota.yaml": "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {configmaps: \"1\"}}\n"},
			then: func(f *fixture) {
				f.git.commit("One map too many", map[string]string{"cases/quota/settings.yaml": plainMap})
				_, _, _ = f.shell.try("flux", "reconcile", "kustomization", "app", "-n", f.namespace, "--with-source")
			},
		},
		{
			name: "namespace", root: "Kustomization/app", code: "namespace-missing", says: []string{"spec.dependsOn"},
			files:   map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ${NS}-nowhere}\n"},
			objects: kustomizationWith(""),
		},
		{
			name: "invalid", root: "Kustomization/app", code: "invalid", says: []string{"fix Deployment/${NS}/web in cases/invalid/web.yaml, commit and push"},
			files: map[string]string{"web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: x}]}}}\n"},
		},
		{
			name: "immutable", files: map[string]string{"web.yaml": deployment("web", "web", 1, "example.com/web:1")}, root: "Kustomization/app", code: "immutable", says: []string{"kustomize.toolkit.fluxcd.io/force: enabled"},
			then: func(f *fixture) {
				f.git.commit("Select others", map[string]string{"cases/immutable/web.yaml": deployment("web", "other", 1, "example.com/web:1")})
				_, _, _ = f.shell.try("flux", "reconcile", "kustomization", "app", "-n", f.namespace, "--with-source")
			},
		},
		{name: "image", nightly: true, files: map[string]string{"web.yaml": troubled("image-pull-error")}, root: "Kustomization/app", code: "health", says: []string{"cannot be pulled"}},
		{name: "crash", files: map[string]string{"web.yaml": troubled("crash-loop")}, root: "Kustomization/app", code: "health", says: []string{"terminated with exit code"}},
		{name: "unschedulable", nightly: true, files: map[string]string{"web.yaml": troubled("pending")}, args: []string{"deployment", "web"}, root: "Deployment/web", code: "health", says: []string{"is unschedulable"}},
	}
}

// resemblingKustomizations lists Kustomizations that fail before or after the apply.
func resemblingKustomizations() []failure {
	return []failure{
		{
			name: "sops-operator", nightly: true, root: "Kustomization/app", code: "health", files: map[string]string{"settings.yaml": plainMap},
			objects: kustomizationWith(`healthChecks: [{apiVersion: apps/v1, kind: Deployment, name: sops-operator, namespace: "${NS}"}]`),
			says: []string{
				"Deployment/${NS}/sops-operator does not exist",
				"add Deployment/${NS}/sops-operator to the source, or remove it from .spec.healthChecks of Kustomization/${NS}/app",
			},
			never: []string{"decrypt"},
			fix:   fixed("sops-operator", map[string]string{"operator.yaml": deployment("sops-operator", "sops", 0, "example.com/sops:1")}),
		},
		{
			name: "sops-secret", nightly: true, root: "Kustomization/app", code: "secret-missing", files: map[string]string{"secret.yaml": encryptedSecret},
			objects: kustomizationWith("decryption: {provider: sops, secretRef: {name: sops-age}}"),
			says:    []string{"Secret ${NS}/sops-age, referenced by .spec.decryption.secretRef.name, does not exist"}, never: []string{"do not decrypt"},
			given: map[string]func(*fixture) string{"<key>": value("identity.agekey"), "<file>": fileWith("no key\n")},
			fails: map[string]string{"flux reconcile kustomization app -n ${NS} --with-source": "Kustomization ${NS}/app is not ready: "}, // the Secret exists, and decrypts nothing
		},
		{
			name: "gizmo", nightly: true, root: "Kustomization/app", code: "api-missing", never: []string{"flux migrate"},
			files: map[string]string{"gizmo.yaml": "apiVersion: nowhere.example.com/v1\nkind: Gizmo\nmetadata: {name: one}\n"},
			says: []string{
				"the cluster does not serve Gizmo in version nowhere.example.com/v1, which is used in ${PATH}/gizmo.yaml",
				"install the CRD of kind Gizmo of group nowhere.example.com",
			},
			fix: func(f *fixture) {
				crd := strings.NewReplacer("delivery.example.com", "nowhere.example.com", "Canary", "Gizmo", "canaries", "gizmos").Replace(canaryDefinition)
				f.shell.run("kubectl", "apply", "-f", tempFile(f.t, "crd.yaml", crd))
				removeFinally(f, crd)
				f.shell.run("kubectl", "wait", waitFlag, "--for=condition=Established", "crd", "gizmos.nowhere.example.com")
			},
		},
		{
			name: "provided", nightly: true, root: "Kustomization/app", code: "api-missing", never: []string{"flux migrate"},
			files: map[string]string{
				"app/gizmo.yaml":  "apiVersion: cause.example.com/v1\nkind: Gizmo\nmetadata: {name: one}\n",
				"crds/other.yaml": strings.NewReplacer("delivery.example.com", "cause.example.com").Replace(canaryDefinition),
			},
			objects: strings.ReplaceAll(kustomizationWith("force: false"), "${PATH}", "${PATH}/app") + "---\n" +
				applied("crds", "GitRepository", "app", "${PATH}/crds", ""),
			says:   []string{"add Kustomization/${NS}/crds, which applies CRDs of group cause.example.com, to .spec.dependsOn of Kustomization/${NS}/app"},
			broken: true,
		},
	}
}
