package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// mostRequests is the maximum number of requests of flux why for one object with at
// most one dependency.
const mostRequests = 10

// TestWhyRequests counts the requests of the diagnosis of one object on a cluster
// with all controllers: it reads the chain of the object, not the cluster.
func TestWhyRequests(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	f.shell.run("flux", "install", "--components-extra=image-reflector-controller,image-automation-controller,source-watcher")
	f.git.commit("Add what works and what fails", map[string]string{
		"app/web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web:1}]}}
`,
		"app/config.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: apps}\n",
		"app/service.yaml":           "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: apps}\nspec: {ports: [{port: 80}]}\n",
		"crash/web.yaml":             strings.ReplaceAll(troubled("crash-loop"), "web", "crash"),
		"invalid/config.yaml":        "apiVersion: v1\nkind: Service\nmetadata: {name: invalid}\nspec: {ports: [{port: 99999}]}\n",
		"unbuilt/kustomization.yaml": "resources: [gone.yaml]\n",
		"chart/Chart.yaml":           chart, "chart/values.yaml": "from: git\n", "chart/templates/app.yaml": chartTemplate,
		"refusing/Chart.yaml": chart, "refusing/templates/app.yaml": "{{ fail \"from is wanted\" }}\n",
		"crashing/Chart.yaml": chart, "crashing/templates/web.yaml": strings.ReplaceAll(troubled("crash-loop"), "web", "released"),
	})
	objects := strings.ReplaceAll(requestsObjects, "${URL}", f.git.url)
	f = f.in("apps")
	reportFailure(f)
	f.seed("apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n")
	f.seed(objects)
	f.shell.run("flux", "wait", "ks/app", "hr/app", "-n", "apps")
	for _, failed := range []string{
		"gitrepository/broken", "kustomization/failed", "kustomization/behind", "kustomization/crash", "kustomization/after",
		"kustomization/invalid", "kustomization/unbuilt", "helmrelease/crashing", "helmrelease/refusing", "helmrelease/chartless",
	} {
		f.shell.run("kubectl", "wait", "--for=condition=Ready=false", "-n", "apps", waitFlag, failed)
	}
	for _, c := range requestCases() {
		t.Run(strings.ReplaceAll(c.args, " ", "-"), func(t *testing.T) {
			got, answer := requests(f.as(t), append(strings.Fields(c.args), "-n", "apps"))
			if controllersInterrupted(f) {
				got = slices.DeleteFunc(got, func(request string) bool { return request == controllerPods })
			}
			if !strings.Contains(answer, c.answer) {
				t.Errorf("no diagnosis:\n%s", answer)
			}
			if len(got) != c.requests || strings.HasPrefix(c.args, "why") && len(got) > mostRequests {
				t.Errorf("%d requests instead of %d:\n%s", len(got), c.requests, strings.Join(got, "\n"))
			}
		})
	}
}

// requestCase is a command, a part of its output, and the number of its requests.
type requestCase struct {
	args, answer string
	requests     int
}

func requestCases() []requestCase {
	const source = "✗ GitRepository/apps/broken: branch nowhere not found"
	return []requestCase{
		{args: "why kustomization app", answer: "No problem found with ", requests: 10}, // the archive of its source, and an inventory of three kinds
		{args: "why helmrelease app", answer: "No problem found with ", requests: 9},    // Helm's storage, and an inventory of one kind
		{args: "why deployment web", answer: "No problem found with ", requests: 10},    // its pods
		{args: "why service web", answer: "No problem found with ", requests: 9},        // the pods that it selects
		{args: "why gitrepository broken", answer: source, requests: 8},
		{args: "why kustomization failed", answer: source, requests: 9},
		{args: "why kustomization behind", answer: source, requests: 10}, // one dependency
		{args: "why helmrelease chartless", answer: source, requests: 10},
		{args: "status kustomization behind", answer: source, requests: 11},                                         // also its own events,
		{args: "status gitrepository broken", answer: source, requests: 8},                                          // the events of the root are its own
		{args: "why kustomization crash", answer: "✗ Kustomization/apps/crash: Deployment/apps/crash", requests: 8}, // the archive of its source contains the file
		{args: "why kustomization after", answer: "✗ Kustomization/apps/crash: Deployment/apps/crash", requests: 9},
		{args: "why deployment crash", answer: "✗ Deployment/apps/crash", requests: 9},
		{args: "why kustomization invalid", answer: "✗ Kustomization/apps/invalid: ", requests: 7}, // the archive of its source,
		{args: "why kustomization unbuilt", answer: "✗ Kustomization/apps/unbuilt: ", requests: 5},
		{args: "why helmrelease crashing", answer: "✗ HelmRelease/apps/crashing: Deployment/apps/released", requests: 7},
		{args: "why helmrelease refusing", answer: "✗ HelmRelease/apps/refusing: ", requests: 6},
	}
}

// controllerPods is the request for the pods of the controllers, which flux why sends if one of them has
// been unavailable since its rollout.
const controllerPods = "GET /api/v1/namespaces/flux-system/pods?limit=10000"

// controllersInterrupted reports whether a controller has been unavailable since its rollout: on a busy machine, it
// can lose its lease and restart.
func controllersInterrupted(f *fixture) bool {
	f.t.Helper()
	const times = `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Available")].lastTransitionTime} {.status.conditions[?(@.type=="Progressing")].lastUpdateTime}{"\n"}{end}`
	for line := range strings.Lines(f.shell.run("kubectl", "get", "deployments", "-n", "flux-system", "-o", times)) {
		if available, rolled, found := strings.Cut(strings.TrimSpace(line), " "); !found || available > rolled {
			f.t.Logf("unavailable since %s, rolled out at %s", available, rolled)
			return true
		}
	}
	return false
}

// requests returns all requests of a command to the API server, sorted, and its
// output.
func requests(f *fixture, args []string) (all []string, output string) {
	f.t.Helper()
	proxy := startProxy(f)
	proxy.OnRequest(func(method, uri string) { all = append(all, method+" "+uri) })
	stdout, stderr, _ := f.shell.with("KUBECONFIG="+proxy.Kubeconfig).try("flux", args...)
	slices.Sort(all)
	return all, stdout + stderr
}

const requestsObjects = `
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: app}, spec: {interval: 1h, url: "${URL}", ref: {branch: main}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: app}, spec: {interval: 1h, path: app, prune: true, wait: true, sourceRef: {kind: GitRepository, name: app}}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: app}, spec: {interval: 1h, chart: {spec: {chart: chart, sourceRef: {kind: GitRepository, name: app}}}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: broken}, spec: {interval: 1h, url: "${URL}", ref: {branch: nowhere}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: failed}, spec: {interval: 1h, path: app, prune: true, sourceRef: {kind: GitRepository, name: broken}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: behind}, spec: {interval: 1h, path: app, prune: true, sourceRef: {kind: GitRepository, name: broken}, dependsOn: [{name: failed}]}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: crash}, spec: {interval: 1h, timeout: 5s, path: crash, prune: true, wait: true, targetNamespace: apps, sourceRef: {kind: GitRepository, name: app}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: after}, spec: {interval: 1h, path: app, prune: true, sourceRef: {kind: GitRepository, name: app}, dependsOn: [{name: crash}]}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: invalid}, spec: {interval: 1h, path: invalid, prune: true, targetNamespace: apps, sourceRef: {kind: GitRepository, name: app}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: unbuilt}, spec: {interval: 1h, path: unbuilt, prune: true, sourceRef: {kind: GitRepository, name: app}}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: crashing}, spec: {interval: 1h, timeout: 5s, install: {strategy: {name: RemediateOnFailure}, remediation: {retries: 0}}, chart: {spec: {chart: crashing, sourceRef: {kind: GitRepository, name: app}}}}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: refusing}, spec: {interval: 1h, chart: {spec: {chart: refusing, sourceRef: {kind: GitRepository, name: app}}}}}
---
{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: chartless}, spec: {interval: 1h, chart: {spec: {chart: chart, sourceRef: {kind: GitRepository, name: broken}}}}}
`
