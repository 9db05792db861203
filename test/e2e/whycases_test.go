package e2e_test

import "slices"

// troubled returns a Deployment whose pods the sandbox simulates in a state.
func troubled(state string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {sandbox.fluxkit.dev/state: ` + state + `}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`
}

const plainMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"

const chartRelease = `${DEFAULT}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app}
spec:
  interval: 1h
  timeout: 10s
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}
`

// whyCases returns the failures of TestWhy.
func whyCases() []causeRow {
	cases := slices.Concat(whySources(), whyKustomizations(), whyReleases(), whyOthers())
	for i := range cases {
		cases[i].once = true // TestCauseRows has the same ones
	}
	return cases
}

func whySources() []causeRow {
	source := func(spec string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 20s, " + spec + "}\n---\n" + `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, retryInterval: 10s, path: ./, prune: true, sourceRef: {kind: GitRepository, name: app}}
`
	}
	return []causeRow{
		{
			name: "authentication", root: "GitRepository/app", code: "source-authentication", says: []string{"Secret why-authentication/wrong"},
			objects: source(`url: "${URL}", secretRef: {name: wrong}`) + `
---
apiVersion: v1
kind: Secret
metadata: {name: wrong}
stringData: {username: dev, password: guessed}
`,
		},
		{name: "anonymous", root: "GitRepository/app", code: "source-authentication", says: []string{".spec.secretRef is not set"}, given: map[string]func(*story) string{"<name>": value("new"), "<user>": value("dev"), "<file>": fileWith("correct horse")}, objects: source(`url: "${URL}"`)},
		{name: "branch", root: "GitRepository/app", code: "source-reference", says: []string{"branch gone"}, objects: source(`url: "${URL}", secretRef: {name: git}, ref: {branch: gone}`)},
		{name: "repository", root: "GitRepository/app", code: "source-not-found", says: []string{"does not exist"}, objects: source(`url: "${URL}.gone", secretRef: {name: git}`)},
		{name: "unreachable", root: "GitRepository/app", code: "source-unreachable", says: []string{"NetworkPolicies"}, objects: source(`url: "http://127.0.0.1:1/fleet.git"`)},
		{name: "secret", root: "GitRepository/app", code: "secret-missing", says: []string{"flux create secret git gone -n why-secret --url="}, given: map[string]func(*story) string{"<user>": value("dev"), "<file>": fileWith("correct horse")}, objects: source(`url: "${URL}", secretRef: {name: gone}`)},
		{
			name: "source", root: "GitRepository/gone", code: "missing", says: []string{"correct the reference to it, or create it: flux create source git gone -n why-source --url=<url> --branch=<branch>"},
			given:   map[string]func(*story) string{"<url>": value("http://127.0.0.1:1/fleet.git"), "<branch>": value("main")},
			fails:   map[string]string{"flux create source git gone -n ${NS} --url=<url> --branch=<branch>": "127.0.0.1:1"},
			objects: "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app}\nspec: {interval: 1h, path: ./, prune: true, sourceRef: {kind: GitRepository, name: gone}}\n",
		},
		{name: "stopped", root: "GitRepository/app", code: "suspended", says: []string{"flux resume source git app -n why-stopped"}, fails: map[string]string{"flux resume source git app -n ${NS}": "requires credentials"}, objects: source(`url: "${URL}", suspend: true`)},
		{
			name: "artifact", ask: []string{"ocirepository", "app"}, root: "OCIRepository/app", code: "source-reference", says: []string{"correct .spec.ref or .spec.url of OCIRepository/why-artifact/app"},
			objects: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app}\nspec: {interval: 1h, insecure: true, url: \"oci://${REGISTRY}/app\", ref: {tag: gone}}\n",
		},
		{
			name: "index", ask: []string{"helmrepository", "app"}, root: "HelmRepository/app", code: "source-unreachable", says: []string{"http://127.0.0.1:1"},
			objects: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: app}\nspec: {interval: 1h, url: \"http://127.0.0.1:1/charts\"}\n",
		},
	}
}

func whyKustomizations() []causeRow {
	yes := map[string]string{"settings.yaml": plainMap}
	return []causeRow{
		{
			name: "suspended", files: yes, root: "Kustomization/app", code: "suspended", says: []string{"frozen for the release"},
			then: func(s *story) {
				s.run("flux", "suspend", "kustomization", "app", "-n", s.namespace, "--reason=frozen for the release")
			},
		},
		{name: "build", files: map[string]string{"kustomization.yaml": "resources: [gone.yaml]\n"}, root: "Kustomization/app", code: "build", says: []string{"flux build kustomization app"}, fails: map[string]string{"flux build kustomization app -n ${NS} --path ${PATH}": "gone.yaml"}},
		{name: "path", root: "Kustomization/app", code: "build-path", says: []string{`no path "cases/path", which .spec.path names`}},
		{
			name: "dependency", files: yes, fails: map[string]string{"flux resume kustomization app -n ${NS}": "the manifests do not build"}, ask: []string{"kustomization", "later"}, root: "Kustomization/app", code: "suspended",
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
			name: "cycle", files: yes, fails: map[string]string{"flux deps kustomization app -n ${NS}": "these wait for each other"}, root: "Kustomization/app", code: "cycle", says: []string{"circular dependency: Kustomization/why-cycle/app"},
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
			name: "old", root: "Kustomization/app", code: "api-missing", says: []string{"set apiVersion of HorizontalPodAutoscaler to autoscaling/v2 or autoscaling/v1 in cases/old/deep/scaler.yaml"},
			files: map[string]string{"deep/scaler.yaml": "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: web}}\n"},
		},
		{
			name: "old-flux", root: "Kustomization/app", code: "api-missing", says: []string{"flux migrate -f cases/old-flux/deep"},
			fails: map[string]string{"flux migrate -f ${PATH}/deep": "GitRepository source.toolkit.fluxcd.io/v1alpha1 → source.toolkit.fluxcd.io/v1\n✗ no terminal to prompt on"},
			files: map[string]string{"deep/source.yaml": "apiVersion: source.toolkit.fluxcd.io/v1alpha1\nkind: GitRepository\nmetadata: {name: old}\nspec: {interval: 1h, url: \"http://127.0.0.1:1/x\"}\n"},
		},
		{
			name: "admission", files: yes, root: "Kustomization/app", code: "admission", says: []string{"policy why-admission"},
			objects: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: why-admission}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  matchConditions: [{name: here, expression: "object.metadata.namespace == 'why-admission' && object.metadata.name == 'settings'"}]
  validations: [{expression: "false", message: "no settings here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: why-admission}
spec: {policyName: why-admission, validationActions: [Deny]}
---
${DEFAULT}`,
		},
		{
			name: "permission", files: yes, root: "Kustomization/app", code: "permission", says: []string{"ServiceAccount why-permission/weak"},
			objects: kustomizationWith("serviceAccountName: weak") + "\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: weak}\n",
		},
		{
			name: "quota", root: "Kustomization/app", code: "quota", says: []string{"raise ResourceQuota few of namespace why-quota"},
			files: map[string]string{"quota.yaml": "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {configmaps: \"1\"}}\n"},
			then: func(s *story) {
				s.commit("One map too many", map[string]string{"cases/quota/settings.yaml": plainMap})
				_, _, _ = s.try("flux", "reconcile", "kustomization", "app", "-n", s.namespace, "--with-source")
			},
		},
		{
			name: "namespace", root: "Kustomization/app", code: "namespace-missing", says: []string{"spec.dependsOn"},
			files:   map[string]string{"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: why-nowhere}\n"},
			objects: kustomizationWith(""),
		},
		{
			name: "invalid", root: "Kustomization/app", code: "invalid", says: []string{"fix Deployment/why-invalid/web in cases/invalid/web.yaml, commit and push"},
			files: map[string]string{"web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: x}]}}}\n"},
		},
		{
			name: "immutable", files: map[string]string{"web.yaml": deployment("web", "web", 1, "example.com/web:1")}, root: "Kustomization/app", code: "immutable", says: []string{"kustomize.toolkit.fluxcd.io/force: enabled"},
			then: func(s *story) {
				s.commit("Select others", map[string]string{"cases/immutable/web.yaml": deployment("web", "other", 1, "example.com/web:1")})
				_, _, _ = s.try("flux", "reconcile", "kustomization", "app", "-n", s.namespace, "--with-source")
			},
		},
		{name: "image", files: map[string]string{"web.yaml": troubled("image-pull-error")}, root: "Kustomization/app", code: "health", says: []string{"cannot be pulled"}},
		{name: "crash", files: map[string]string{"web.yaml": troubled("crash-loop")}, root: "Kustomization/app", code: "health", says: []string{"ended with exit code"}},
		{name: "unschedulable", files: map[string]string{"web.yaml": troubled("pending")}, ask: []string{"deployment", "web"}, root: "Deployment/web", code: "health", says: []string{"is unschedulable"}},
	}
}

// kustomizationWith returns a GitRepository and a Kustomization with additional spec,
// and without a target namespace if the spec is only that.
func kustomizationWith(spec string) string {
	if spec == "" {
		spec = "force: false"
	} else {
		spec += `, targetNamespace: "${NS}"`
	}
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, retryInterval: 10s, timeout: 20s, path: "${PATH}", prune: true, ` + spec + `, sourceRef: {kind: GitRepository, name: app}}
`
}

func whyReleases() []causeRow {
	release := []string{"helmrelease", "app"}
	yes := map[string]string{"settings.yaml": plainMap}
	return []causeRow{
		{name: "chart", files: yes, ask: release, root: "HelmChart/why-chart-app", code: "chart-version", says: []string{"correct .spec.chart.spec.chart"}, objects: chartAt("./gone", "")},
		{name: "values", files: yes, ask: release, root: "HelmRelease/app", code: "values-missing", says: []string{"spec.valuesFrom"}, objects: chartRelease + "  valuesFrom: [{kind: ConfigMap, name: gone}]\n"},
		{
			name: "template", ask: release, root: "HelmRelease/app", code: "template", says: []string{"correct .spec.values"},
			files:   map[string]string{"chart/Chart.yaml": chart, "chart/templates/app.yaml": "{{ fail \"from is wanted\" }}\n", "kustomization.yaml": "resources: []\n"},
			objects: chartAt("./cases/template/chart", ""),
		},
		{
			name: "exhausted", ask: release, root: "HelmRelease/app", code: "health", says: []string{"flux reconcile helmrelease app -n why-exhausted --with-source --reset"},
			files:   map[string]string{"chart/Chart.yaml": chart, "chart/templates/web.yaml": troubled("image-pull-error"), "kustomization.yaml": "resources: []\n"},
			objects: chartAt("./cases/exhausted/chart", "  install: {remediation: {retries: 0}, strategy: {name: RemediateOnFailure}}\n"),
		},
	}
}

// chartAt returns a release with a chart from a folder of the repository.
func chartAt(path, more string) string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app}
spec:
  interval: 1h
  timeout: 10s
  chart: {spec: {chart: ` + path + `, sourceRef: {kind: GitRepository, name: app}}}
` + more
}

func whyOthers() []causeRow {
	yes := map[string]string{"settings.yaml": plainMap}
	return []causeRow{
		{
			name: "deleted", files: yes, ask: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "deleted", says: []string{"flux reconcile kustomization app -n why-deleted"},
			then: func(s *story) { s.run("kubectl", "-n", s.namespace, "delete", "configmap", "settings") },
		},
		{
			name: "pruned", files: map[string]string{"settings.yaml": plainMap, "more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"},
			ask: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "pruned", says: []string{"add it to the source again"},
			then: func(s *story) {
				s.commit("Take the settings out", map[string]string{"cases/pruned/settings.yaml": ""})
				s.run("flux", "reconcile", "kustomization", "app", "-n", s.namespace, "--with-source")
			},
		},
		{
			name: "disabled", files: yes, ask: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "disabled", says: []string{"nothing is applied to it"},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "annotate", "configmap", "settings", "kustomize.toolkit.fluxcd.io/reconcile=disabled")
			},
		},
		{
			name: "unmanaged", files: yes, ask: []string{"configmap", "mine"}, root: "ConfigMap/mine", code: "unmanaged", says: []string{"add it to a source"},
			then: func(s *story) { s.run("kubectl", "-n", s.namespace, "create", "configmap", "mine") },
		},
		{
			name: "finalizer", files: yes, root: "Kustomization/app", code: "deleting", says: []string{"example.com/hold"},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "kustomization", "app", "--type=json", `-p=[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]`)
				s.run("kubectl", "-n", s.namespace, "delete", "kustomization", "app", "--wait=false")
				s.Cleanup(func() {
					_, _, _ = s.try("kubectl", "-n", s.namespace, "patch", "kustomization", "app", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
				})
			},
		},
		{
			name: "receiver", ask: []string{"receiver", "app"}, root: "Receiver/app", code: "secret-missing", says: []string{"create Secret why-receiver/gone"}, given: map[string]func(*story) string{"<host>": value("flux.example.com")},
			objects: "apiVersion: notification.toolkit.fluxcd.io/v1\nkind: Receiver\nmetadata: {name: app}\nspec: {type: generic, secretRef: {name: gone}, resources: [{kind: GitRepository, name: app}]}\n",
		},
		{
			name: "scan", ask: []string{"imagepolicy", "app"}, root: "ImageRepository/app", code: "source-unreachable", says: []string{"127.0.0.1:1/app"},
			objects: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 5s, image: \"127.0.0.1:1/app\", insecure: true}\n---\n" +
				"apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\nmetadata: {name: app}\nspec: {imageRepositoryRef: {name: app}, policy: {semver: {range: 1.x}}}\n",
		},
	}
}
