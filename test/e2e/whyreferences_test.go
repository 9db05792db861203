package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhyReferences(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingReferences(), false)
}

func TestNightlyWhyReferences(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingReferences(), true)
}

// failingReferences lists objects whose root cause is at the end of a reference, or in a field that the message does not
// contain.
func failingReferences() []failure {
	all := slices.Concat(awaitedChildren(), sourceFields(), buildEntries(), releaseFields(), accounts(), automationFields())
	return withoutReconcile(all)
}

// child returns the files of a Kustomization that waits for a child Kustomization with a path and more spec.
func child(path, more string, files map[string]string) map[string]string {
	all := map[string]string{
		"kustomization.yaml": "resources: [child.yaml]\n",
		"child.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: child}\n" +
			"spec: {interval: 1h, retryInterval: 10s, timeout: 20s, path: \"" + path + "\", prune: true, sourceRef: {kind: GitRepository, name: app}" + more + "}\n",
	}
	for name, content := range files {
		all["inner/"+name] = content
	}
	return all
}

// awaitedChildren lists Kustomizations that wait for the health of a Flux object.
func awaitedChildren() []failure {
	const later = "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: later}\n" +
		"spec: {interval: 1h, path: \"${PATH}\", prune: true, dependsOn: [{name: app}], sourceRef: {kind: GitRepository, name: app}}\n"
	return []failure{
		{
			name: "wait-path", files: child("./gone", "", nil), root: "Kustomization/child", code: "build-path",
			objects: "${DEFAULT}" + later, args: []string{"kustomization", "later"}, says: []string{`.spec.path "./gone" does not exist in the source`},
		},
		{
			name: "wait-pods", nightly: true, root: "Kustomization/child", code: "health", never: []string{"Kustomization/${NS}/child is not ready"},
			files: child("./cases/wait-pods/inner", `, wait: true, targetNamespace: "${NS}"`, map[string]string{"web.yaml": troubled("pending")}),
			says:  []string{"fix Deployment/${NS}/web in cases/wait-pods/inner/web.yaml, commit and push"},
		},
		{
			name: "wait-name", nightly: true, root: "Kustomization/child", code: "namespace-unset",
			files: child("./cases/wait-name/inner", "", map[string]string{"settings.yaml": strings.Replace(plainMap, "settings}", "Bad_Name}", 1)}),
		},
		{
			name: "wait-source", nightly: true, root: "GitRepository/other", code: "source-unreachable", says: []string{"cannot reach http://127.0.0.1:1/x"},
			files: map[string]string{"source.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other}\nspec: {interval: 1h, url: \"http://127.0.0.1:1/x\"}\n"},
		},
		{
			name: "suspended-in-git", nightly: true, args: []string{"kustomization", "child"}, root: "Kustomization/child", code: "suspended",
			files: child("./cases/suspended-in-git/inner", ", suspend: true", map[string]string{"settings.yaml": plainMap}),
			says:  []string{"remove .spec.suspend from the manifest of Kustomization/${NS}/child in the source of Kustomization/${NS}/app"}, never: []string{"flux resume kustomization"},
			objects: kustomizationWith("wait: false"),
		},
	}
}

// sourceWith returns a GitRepository and a Kustomization with additional spec of the source.
func sourceWith(spec string) string {
	return strings.Replace(whyDefault, "ref: {branch: main}", spec, 1)
}

// sourceFields lists sources with a wrong field.
func sourceFields() []failure {
	yes := map[string]string{"settings.yaml": plainMap}
	main := "ref: {branch: main}, "
	return []failure{
		{name: "include", nightly: true, files: yes, objects: sourceWith(main + "include: [{repository: {name: gone}}]"), root: "GitRepository/gone", code: "missing", given: map[string]func(*fixture) string{"<url>": value("http://127.0.0.1:1/gone"), "<branch>": value("main")}, fails: map[string]string{"flux create source git gone -n ${NS} --url=<url> --branch=<branch>": "cannot reach"}},
		{name: "sparse", files: yes, objects: sourceWith(main + "sparseCheckout: [nodir]"), root: "GitRepository/app", code: "source-reference", says: []string{"correct .spec.sparseCheckout of GitRepository/${NS}/app"}},
		{name: "short-commit", nightly: true, files: yes, objects: sourceWith("ref: {commit: abc1234}"), root: "GitRepository/app", code: "source-reference", says: []string{"a commit ID has 40 digits"}},
		{
			name: "proxy", nightly: true, files: yes, root: "GitRepository/app", code: "source-proxy", says: []string{"cannot reach the proxy in Secret ${NS}/proxy"}, never: []string{".spec.url"},
			objects: sourceWith(main+"proxySecretRef: {name: proxy}") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: proxy}\nstringData: {address: \"http://127.0.0.1:1\"}\n",
		},
		{name: "ignored", files: yes, objects: sourceWith(main + `ignore: "/cases/ignored"`), root: "Kustomization/app", code: "build-path", says: []string{".spec.ignore of GitRepository/${NS}/app excludes it"}, never: []string{"push it"}},
		{
			name: "other-kind", nightly: true, files: yes, root: "OCIRepository/app", code: "missing", says: []string{"GitRepository/${NS}/app exists: set the kind of the reference to GitRepository"},
			objects: strings.Replace(whyDefault, "sourceRef: {kind: GitRepository", "sourceRef: {kind: OCIRepository", 1),
			given:   map[string]func(*fixture) string{"<url>": value("oci://127.0.0.1:1/gone"), "<tag>": value("v1")},
			fails:   map[string]string{"flux create source oci app -n ${NS} --url=<url> --tag=<tag>": "cannot reach"},
		},
		{
			name: "generator", nightly: true, files: yes, root: "ArtifactGenerator/parts", code: "artifact-empty", says: []string{"no files in source app match nodir/**"},
			objects: strings.Replace(whyDefault, "sourceRef: {kind: GitRepository, name: app", "sourceRef: {kind: ExternalArtifact, name: part", 1) + `---
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: parts}
spec: {sources: [{alias: app, kind: GitRepository, name: app}], artifacts: [{name: part, copy: [{from: "@app/nodir/**", to: "@artifact/"}]}]}
`,
		},
	}
}

// buildEntries lists directories that kustomize does not build.
func buildEntries() []failure {
	build := func(name, says, kustomization string, files map[string]string) failure {
		all := map[string]string{"kustomization.yaml": kustomization}
		for file, content := range files {
			all[file] = content
		}
		return failure{name: name, nightly: true, files: all, root: "Kustomization/app", code: "build", says: []string{says}}
	}
	twice := build("twice", "the build contains ConfigMap/settings twice", "resources: [a.yaml, b.yaml]\n", map[string]string{"a.yaml": plainMap, "b.yaml": plainMap})
	twice.fails = map[string]string{"flux build kustomization app -n ${NS} --path ${PATH}": "registered"}
	return []failure{
		build("entry", "cases/entry/kustomization.yaml lists gone.yaml, which does not exist", "resources: [gone.yaml]\n", nil),
		build("patch-file", "cases/patch-file/kustomization.yaml lists p.yaml, which does not exist", "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", map[string]string{"a.yaml": plainMap}),
		build("patch-target", "the build contains no ConfigMap/nope", "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", map[string]string{"a.yaml": plainMap, "p.yaml": strings.Replace(plainMap, "settings", "nope", 1)}),
		build("no-yaml", "a.yaml is not valid YAML", "resources: [a.yaml]\n", map[string]string{"a.yaml": "a: b\n c: d\n"}),
		build("outside", "lists /etc/passwd, which is outside the source", "resources: [/etc/passwd]\n", nil),
		build("base", "the remote base http://127.0.0.1:1/x.yaml cannot be loaded", "resources: [\"http://127.0.0.1:1/x.yaml\"]\n", nil),
		build("helm-charts", "uses helmCharts, which Flux does not support", "helmCharts: [{name: x, repo: \"https://example.com\"}]\n", nil),
		twice,
	}
}

// releaseFields lists releases with a wrong field, value or chart.
func releaseFields() []failure {
	args := []string{"helmrelease", "app"}
	none := map[string]string{"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart}
	with := func(file, content string) map[string]string {
		return map[string]string{"kustomization.yaml": none["kustomization.yaml"], "chart/Chart.yaml": chart, file: content}
	}
	values := func(data string) string {
		return chartRelease + "  valuesFrom: [{kind: ConfigMap, name: extra}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: " + data + "\n"
	}
	yes := map[string]string{"settings.yaml": plainMap}
	return []failure{
		{name: "values-key", files: yes, args: args, objects: values(`{other: "a: b"}`), root: "HelmRelease/app", code: "values-missing", says: []string{"add key values.yaml to ConfigMap/${NS}/extra, or correct valuesKey"}, never: []string{"create ConfigMap"}},
		{name: "values-yaml", nightly: true, files: yes, args: args, objects: values(`{values.yaml: "a: [b"}`), root: "HelmRelease/app", code: "values-invalid", never: []string{"create ConfigMap"}},
		{
			name: "chart-dependency", nightly: true, args: args, objects: chartAt("./cases/chart-dependency/chart", ""), root: "HelmChart/${NS}-app", code: "chart-dependency",
			files: with("chart/Chart.yaml", chart+"dependencies: [{name: x, version: 1.0.0, repository: \"http://127.0.0.1:1/charts\"}]\n"),
			says:  []string{"correct repository and version of dependency x in Chart.yaml"}, never: []string{"GitRepository"},
		},
		{
			name: "post-renderer", nightly: true, files: yes, args: args, root: "HelmRelease/app", code: "post-renderer",
			objects: chartRelease + `  postRenderers: [{kustomize: {patches: [{target: {kind: ConfigMap}, patch: "- {op: remove, path: /data/none}"}]}}]` + "\n",
		},
		{name: "nil-value", nightly: true, args: args, objects: chartAt("./cases/nil-value/chart", ""), files: with("chart/templates/a.yaml", "a: {{ .Values.x.y.z }}\n"), root: "HelmRelease/app", code: "template", says: []string{"nil pointer"}},
		{name: "kube-version", nightly: true, args: args, objects: chartAt("./cases/kube-version/chart", ""), files: with("chart/Chart.yaml", chart+"kubeVersion: \">=9.0.0\"\n"), root: "HelmRelease/app", code: "chart-kube-version"},
		{name: "namespace-of-release", nightly: true, files: yes, args: args, objects: chartRelease + "  targetNamespace: ${NS}-nowhere\n", root: "HelmRelease/app", code: "namespace-missing", says: []string{"set .spec.install.createNamespace"}},
	}
}

// accounts lists objects with permissions, limits and metadata that the API server rejects.
func accounts() []failure {
	yes := map[string]string{"settings.yaml": plainMap}
	return []failure{
		{name: "no-account", files: yes, objects: kustomizationWith("serviceAccountName: ghost"), root: "Kustomization/app", code: "account-missing", says: []string{"create ServiceAccount ${NS}/ghost"}, never: []string{"grant"}},
		{name: "no-account-helm", nightly: true, files: yes, args: []string{"helmrelease", "app"}, objects: chartRelease + "  serviceAccountName: ghost\n", root: "HelmRelease/app", code: "account-missing", never: []string{"grant", "remove Secret"}},
		{name: "common-metadata", nightly: true, files: yes, objects: kustomizationWith(`commonMetadata: {labels: {a: "not valid!"}}`), root: "Kustomization/app", code: "invalid", says: []string{"correct .spec.commonMetadata.labels of Kustomization/${NS}/app"}, never: []string{"settings.yaml"}},
		{name: "too-large", nightly: true, files: map[string]string{"big.yaml": strings.Replace(plainMap, "a: b", `a: "`+strings.Repeat("x", 1100000)+`"`, 1)}, root: "Kustomization/app", code: "too-large"},
		{name: "uid", nightly: true, files: map[string]string{"settings.yaml": strings.Replace(plainMap, "settings}", "settings, uid: abc}", 1)}, root: "Kustomization/app", code: "precondition", says: []string{"remove metadata.uid and metadata.resourceVersion from ConfigMap/${NS}/settings in cases/uid/settings.yaml"}},
		{
			name: "must-specify", nightly: true, root: "Kustomization/app", code: "quota", says: []string{"set the requests and limits that ResourceQuota q in namespace ${NS} requires"}, never: []string{"raise"},
			files:   map[string]string{"web.yaml": deployment("web", "web", 1, "example.com/web:1")},
			objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {requests.cpu: \"1\", limits.memory: 1Gi}}\n---\n${DEFAULT}",
		},
		{
			name: "storage-class", nightly: true, root: "Kustomization/app", code: "health", says: []string{"StorageClass nope does not exist", "kubectl get storageclasses"},
			files: map[string]string{
				"claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: nope, resources: {requests: {storage: 1Gi}}}\n",
				"web.yaml":   strings.Replace(troubled("running"), "spec: {containers", "spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], containers", 1),
			},
		},
	}
}

// automationFields lists image automations, Alerts and Receivers with a wrong field.
func automationFields() []failure {
	yes := map[string]string{"settings.yaml": plainMap}
	automation := func(git, path string) string {
		return "${DEFAULT}---\napiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageUpdateAutomation\nmetadata: {name: app}\n" +
			"spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app}, git: {" + git + "commit: {author: {name: a, email: a@example.com}}, push: {branch: updates}}, update: {path: " + path + "}}\n"
	}
	args := []string{"image", "update", "app"}
	return []failure{
		{name: "update-path", nightly: true, files: yes, args: args, objects: automation("", "./nodir"), root: "ImageUpdateAutomation/app", code: "update-path", says: []string{"correct .spec.update.path"}},
		{name: "checkout-branch", nightly: true, files: yes, args: args, objects: automation("checkout: {ref: {branch: gone}}, ", "./"), root: "ImageUpdateAutomation/app", code: "source-reference", says: []string{"branch gone not found", "correct .spec.git.checkout.ref of ImageUpdateAutomation/${NS}/app"}},
		{
			name: "event-source", files: yes, args: []string{"alert", "app"}, root: "Alert/app", code: "missing-reference", says: []string{"Kustomization/${NS}/nosuch in .spec.eventSources does not exist"},
			objects: "${DEFAULT}---\napiVersion: notification.toolkit.fluxcd.io/v1\nkind: Provider\nmetadata: {name: app}\nspec: {type: generic, address: \"http://127.0.0.1:1\"}\n" +
				"---\napiVersion: notification.toolkit.fluxcd.io/v1\nkind: Alert\nmetadata: {name: app}\nspec: {providerRef: {name: app}, eventSources: [{kind: Kustomization, name: nosuch}]}\n",
		},
		{
			name: "receiver-resource", nightly: true, files: yes, args: []string{"receiver", "app"}, root: "Receiver/app", code: "missing-reference",
			objects: "${DEFAULT}---\napiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {token: x}\n" +
				"---\napiVersion: notification.toolkit.fluxcd.io/v1\nkind: Receiver\nmetadata: {name: app}\nspec: {type: generic, secretRef: {name: token}, resources: [{kind: GitRepository, name: gone}]}\n",
		},
	}
}
