package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNightlyWhySituations checks situations that were previously diagnosed incorrectly or incompletely.
func TestNightlyWhySituations(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	all := slices.Concat(releaseSituations(), awaitedReleases(), objectSituations())
	runFailures(f, withoutReconcile(all), true)
}

// failingHook returns a chart Job that runs as a hook of the release, and fails.
func failingHook(hook string) string {
	return `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: ` + hook + `}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {sandbox.fluxkit.dev/state: fail}}
    spec: {restartPolicy: Never, containers: [{name: migrate, image: "example.com/migrate:1"}]}
`
}

// releaseSituations lists releases whose root cause is not in their own status.
func releaseSituations() []failure {
	args := []string{"helmrelease", "app"}
	const none = "resources: []\n"
	second := func(more string) string {
		return "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: second}\nspec:\n  interval: 1h\n  releaseName: app\n" +
			"  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}\n" + more
	}
	return []failure{
		{
			name: "shared-release", nightly: true, args: args, root: "HelmRelease/app", code: "release-shared", files: map[string]string{"settings.yaml": plainMap},
			objects: patient(chartRelease) + second(""), says: []string{"Helm release app in namespace ${NS} is also managed by HelmRelease/${NS}/second", "spec.suspend: true"},
		},
		{
			name: "install-hook", nightly: true, args: args, root: "HelmRelease/app", code: "health", says: []string{"Job/${NS}/migrate"},
			objects: chartAt("./cases/install-hook/chart", "  install: {remediation: {retries: 0}, strategy: {name: RemediateOnFailure}}\n"),
			files:   map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/job.yaml": failingHook("pre-install"), "chart/templates/web.yaml": plainMap},
		},
		{
			name: "delete-hook", nightly: true, args: args, root: "HelmRelease/app", code: "deleting", says: []string{"UninstallFailed", "Job/${NS}/migrate"},
			objects: "${DEFAULT}\n---\n" + chartAt("./cases/delete-hook/chart", ""),
			files:   map[string]string{"kustomization.yaml": none, "chart/Chart.yaml": chart, "chart/templates/job.yaml": failingHook("pre-delete"), "chart/templates/web.yaml": plainMap},
			then: func(f *fixture) {
				f.shell.run("flux", "wait", "helmrelease", "app", "-n", f.namespace)
				f.shell.run("kubectl", "-n", f.namespace, "delete", "helmrelease", "app", "--wait=false")
				f.t.Cleanup(func() { // the hook would block the deletion of the namespace
					free := map[string]any{"metadata": map[string]any{"finalizers": nil}}
					if _, err := f.cluster.Client.MergePatch(context.Background(), resource(f.t, "HelmRelease"), f.namespace, "app", free); err != nil {
						f.t.Error(err)
					}
				})
			},
		},
	}
}

// awaitedReleases lists Kustomizations that wait for a HelmRelease or an image resource that fails.
func awaitedReleases() []failure {
	release := func(name string, more string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: child}\nspec:\n  interval: 1h\n  timeout: 10s\n" +
			fmt.Sprintf("  chart: {spec: {chart: ./cases/%s/chart, sourceRef: {kind: GitRepository, name: app}}}\n", name) + more
	}
	files := func(name, more string, chartFiles map[string]string) map[string]string {
		all := map[string]string{"kustomization.yaml": "resources: [release.yaml]\n", "release.yaml": release(name, more), "chart/Chart.yaml": chart}
		for file, content := range chartFiles {
			all["chart/"+file] = content
		}
		return all
	}
	return []failure{
		{
			name: "wait-schema", nightly: true, root: "HelmRelease/child", code: "template",
			files: files("wait-schema", "  values: {replicas: many}\n", map[string]string{
				"templates/web.yaml": plainMap, "values.schema.json": `{"type": "object", "properties": {"replicas": {"type": "integer"}}}`,
			}),
		},
		{
			name: "wait-hook", nightly: true, root: "HelmRelease/child", code: "health", says: []string{"Job/${NS}/migrate"},
			files: files("wait-hook", "  install: {remediation: {retries: 0}, strategy: {name: RemediateOnFailure}}\n", map[string]string{"templates/job.yaml": failingHook("pre-install"), "templates/web.yaml": plainMap}),
		},
	}
}

// objectSituations lists Kubernetes objects that do not work, although their Kustomization is ready.
func objectSituations() []failure {
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"
	plain := strings.ReplaceAll(kustomizationWith("wait: false"), "timeout: 20s", "timeout: 5m")
	return []failure{
		{
			name: "no-pods", nightly: true, args: []string{"service", "web"}, root: "Service/web", code: "health", objects: plain,
			files: map[string]string{"web.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: wbe}, ports: [{port: 80}]}\n"},
			says:  []string{"no pod in namespace ${NS} matches its selector: app=wbe"},
		},
		{
			name: "no-address", nightly: true, args: []string{"service", "web"}, root: "Service/web", code: "health", objects: plain,
			files: map[string]string{"web.yaml": web("1") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}\n"},
			says:  []string{"it has no load balancer address"},
		},
		{
			name: "budget", nightly: true, args: []string{"pdb", "web"}, root: "PodDisruptionBudget/web", code: "health", objects: plain,
			files: map[string]string{"web.yaml": web("1") + "---\n" + budget},
		},
	}
}
