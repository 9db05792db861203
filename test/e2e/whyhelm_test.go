package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhyReleases(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingReleases(), false)
}

func TestNightlyWhyReleases(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingReleases(), true)
}

// failingReleases lists releases whose charts, values, manifests or objects fail.
func failingReleases() []failure {
	return slices.Concat(withoutReconcile(releaseFailures()), rejectedReleases(), unhealthyReleases())
}

func releaseFailures() []failure {
	release := []string{"helmrelease", "app"}
	yes := map[string]string{"settings.yaml": plainMap}
	return []failure{
		{name: "chart", files: yes, args: release, root: "HelmChart/${NS}-app", code: "chart-version", says: []string{"correct .spec.chart.spec.chart"}, objects: chartAt("./gone", "")},
		{name: "values", files: yes, args: release, root: "HelmRelease/app", code: "values-missing", says: []string{"spec.valuesFrom"}, objects: chartRelease + "  valuesFrom: [{kind: ConfigMap, name: gone}]\n"},
		{
			name: "template", args: release, root: "HelmRelease/app", code: "template", says: []string{"correct .spec.values"},
			files:   map[string]string{"chart/Chart.yaml": chart, "chart/templates/app.yaml": "{{ fail \"from is wanted\" }}\n", "kustomization.yaml": "resources: []\n"},
			objects: chartAt("./cases/template/chart", ""),
		},
		{
			name: "exhausted", args: release, root: "HelmRelease/app", code: "health", says: []string{"flux reconcile helmrelease app -n ${NS} --with-source --reset"},
			files:   map[string]string{"chart/Chart.yaml": chart, "chart/templates/web.yaml": troubled("image-pull-error"), "kustomization.yaml": "resources: []\n"},
			objects: chartAt("./cases/exhausted/chart", "  install: {remediation: {retries: 0}, strategy: {name: RemediateOnFailure}}\n"),
		},
	}
}

// rejectedReleases lists releases of charts with manifests that the API server rejects.
func rejectedReleases() []failure {
	release := func(name, more string) string {
		return patient(chartAt("./cases/"+name+"/chart", more))
	}
	const next = "apiVersion: v2\nname: app\nversion: 2.0.0\n"
	const none = "resources: []\n"
	args := []string{"helmrelease", "app"}
	return []failure{
		{
			name: "helm-port", nightly: true, args: args, root: "HelmRelease/app", code: "invalid", objects: release("helm-port", ""),
			files: map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/web.yaml": service("immutable-sops", "ports: [{port: 99999, targetPort: 80}]")},
			says: []string{
				"Service/${NS}/immutable-sops: spec.ports[0].port: Invalid value: 99999",
				"fix .spec.ports[0].port of Service/${NS}/immutable-sops in the values of HelmRelease/${NS}/app or the templates of chart ./${PATH}/chart",
			},
			never: []string{"force", "kubectl"},
			fix:   fixed("helm-port", map[string]string{"chart/Chart.yaml": next, "chart/templates/web.yaml": service("immutable-sops", "ports: [{port: 80}]")}),
		},
		{
			name: "helm-selector", nightly: true, args: args, root: "HelmRelease/app", code: "immutable", objects: "${DEFAULT}\n---\n" + release("helm-selector", ""),
			files: map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/web.yaml": deployment("web", "web", 0, "example.com/web:1")},
			says: []string{
				"field is immutable: .spec.selector of Deployment/${NS}/web",
				"(its pods are stopped), so that the next upgrade recreates it: kubectl -n ${NS} delete deployment.apps web",
			},
			never: []string{"spec.upgrade.force", "kustomize.toolkit"},
			then: func(f *fixture) {
				f.shell.run("flux", "wait", "helmrelease", "app", "-n", f.namespace)
				f.git.commit("Select others with Helm", map[string]string{
					"cases/helm-selector/chart/Chart.yaml": next, "cases/helm-selector/chart/templates/web.yaml": deployment("web", "other", 0, "example.com/web:1"),
				})
				_, _, _ = f.shell.try("flux", "reconcile", "helmrelease", "app", "-n", f.namespace, "--with-source")
			},
			fix: func(*fixture) {}, // the commands are enough
		},
		{
			name: "helm-rollback", nightly: true, args: args, root: "HelmRelease/app", code: "invalid", never: []string{"succeeded"},
			objects: "${DEFAULT}\n---\n" + release("helm-rollback", "  upgrade: {remediation: {retries: 0, strategy: rollback, remediateLastFailure: true}}\n"),
			files:   map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/web.yaml": service("web", "ports: [{port: 80}]")},
			says:    []string{"API server rejected Service/${NS}/web: spec.ports[0].port: Invalid value: 99999"},
			then: func(f *fixture) {
				f.shell.run("flux", "wait", "helmrelease", "app", "-n", f.namespace)
				f.git.commit("Use a wrong port with Helm", map[string]string{
					"cases/helm-rollback/chart/Chart.yaml": next, "cases/helm-rollback/chart/templates/web.yaml": service("web", "ports: [{port: 99999, targetPort: 80}]"),
				})
				_, _, _ = f.shell.try("flux", "reconcile", "helmrelease", "app", "-n", f.namespace, "--with-source")
			},
			fix: fixed("helm-rollback", map[string]string{"chart/Chart.yaml": strings.Replace(next, "2.0.0", "3.0.0", 1), "chart/templates/web.yaml": service("web", "ports: [{port: 80}]")}),
		},
		{
			name: "helm-owner", args: args, root: "HelmRelease/app", code: "release-ownership",
			objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n" + release("helm-owner", "  install: {disableTakeOwnership: true}\n"),
			files:   map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/settings.yaml": plainMap},
			says:    []string{"ConfigMap/${NS}/settings exists and does not belong to this Helm release", "remove .spec.install.disableTakeOwnership of HelmRelease/${NS}/app"},
			fix:     func(f *fixture) { f.shell.run("kubectl", "-n", f.namespace, "delete", "configmap", "settings") },
		},
	}
}

// unhealthyReleases lists releases whose Ready condition does not have the reason of the
// failure.
func unhealthyReleases() []failure {
	args := []string{"helmrelease", "app"}
	extend := func(f *fixture) {
		f.shell.run("kubectl", "-n", f.namespace, "patch", "helmrelease", "app", "--type=merge", `-p={"spec":{"timeout":"3m"}}`)
	}
	row := func(name, template, manifest, state, healthy, more string) failure {
		files := map[string]string{"chart/Chart.yaml": strings.Replace(chart, "1.2.3", "2.0.0", 1), "chart/templates/" + template: strings.ReplaceAll(manifest, "STATE", healthy)}
		return failure{
			name: name, nightly: true, args: args, root: "HelmRelease/app", code: "health", objects: chartAt("./cases/"+name+"/chart", once+more),
			files: map[string]string{"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/" + template: strings.ReplaceAll(manifest, "STATE", state)},
			fix: func(f *fixture) {
				fixed(name, files)(f)
				extend(f)
			},
		}
	}
	test := row("helm-test", "test.yaml", testPod, "image-pull-error", "complete", "  test: {enable: true}\n")
	test.says = []string{`Pod/${NS}/app-test: the image "example.com/test:1" cannot be pulled`, "flux reconcile helmrelease app -n ${NS} --with-source --reset"}
	hook := row("helm-hook", "job.yaml", hookJob, "fail", `""`, "")
	hook.says = []string{"Job/${NS}/migrate: container migrate of pod migrate-", "exit code 1"}
	crash := row("helm-crash", "web.yaml", troubled("STATE"), "crash-loop", `""`, "")
	crash.says = []string{"Deployment/${NS}/web: container web of pod web-", "exit code 1"}
	rollback := row("helm-rollback-health", "web.yaml", troubled("{{ .Values.state | quote }}"), "", "", "")
	rollback.files["chart/values.yaml"] = "state: \"\"\n"
	rollback.objects = "${DEFAULT}\n---\n" + patient(rollback.objects)
	rollback.says = []string{"Deployment/${NS}/web: pod web-", "since deleted: Failed: Error: "}
	rollback.then = func(f *fixture) {
		f.shell.run("flux", "wait", "helmrelease", "app", "-n", f.namespace)
		f.shell.run("kubectl", "-n", f.namespace, "patch", "helmrelease", "app", "--type=merge", `-p={"spec":{"timeout":"10s","values":{"state":"image-pull-error"}}}`)
	}
	rollback.fix = func(f *fixture) {
		extend(f)
		f.shell.run("kubectl", "-n", f.namespace, "patch", "helmrelease", "app", "--type=merge", `-p={"spec":{"values":{"state":""}}}`)
	}
	return []failure{test, hook, crash, rollback}
}
