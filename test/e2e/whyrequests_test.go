package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// TestWhyRequests counts the requests of the diagnosis of one object while the
// controllers run: it reads the chain of the object, not the cluster.
func TestWhyRequests(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.run("flux", "install")
	s.commit("Add what works", map[string]string{
		"app/web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web:1}]}}
`,
		"app/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: apps}\n",
		"app/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: apps}\nspec: {ports: [{port: 80}]}\n",
		"chart/Chart.yaml": chart, "chart/values.yaml": "from: git\n", "chart/templates/app.yaml": chartTemplate,
	})
	objects := strings.ReplaceAll(requestsObjects, "${URL}", s.url)
	for _, manifests := range []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n", objects} {
		if err := s.cluster.Seed(s.Context(), []byte(manifests), "apps"); err != nil {
			s.Fatal(err)
		}
	}
	s.run("flux", "wait", "ks/app", "hr/app", "-n", "apps", "--timeout=2m")
	s.namespace = "apps"
	for _, name := range []string{"gitrepository broken", "kustomization failed", "kustomization behind"} {
		s.run("kubectl", "wait", "--for=condition=Ready=false", "-n", "apps", "--timeout=2m", strings.Split(name, " ")[0], strings.Split(name, " ")[1])
	}
	for _, row := range []struct {
		ask      string
		requests int
	}{
		{"why gitrepository broken", 6},
		{"why kustomization failed", 7},
		{"why kustomization behind", 8}, // one dependency
		{"why kustomization app", 10},   // the archive of its source, and an inventory of three kinds
		{"why helmrelease app", 9},      // Helm's storage, and an inventory of one kind
		{"why deployment web", 10},      // its pods
		{"why service web", 8},          // no pods
		{"status kustomization behind", 9},
	} {
		t.Run(strings.ReplaceAll(row.ask, " ", "-"), func(t *testing.T) {
			if got := s.requests(t, append(strings.Fields(row.ask), "-n", "apps")); len(got) != row.requests {
				t.Errorf("%d requests instead of %d:\n%s", len(got), row.requests, strings.Join(got, "\n"))
			}
		})
	}
}

// requests returns all requests of a command to the API server, sorted.
func (s *story) requests(t *testing.T, args []string) []string {
	t.Helper()
	one := *s
	one.T = t
	proxy := one.proxy()
	var all []string
	proxy.OnRequest(func(method, uri string) { all = append(all, method+" "+uri) })
	one.env = append(slices.Clone(s.env), "KUBECONFIG="+proxy.Kubeconfig)
	stdout, stderr, _ := one.try("flux", args...)
	if !strings.HasPrefix(stdout, "No problem found with ") && !strings.Contains(stdout, "GitRepository/apps/broken: branch nowhere not found") {
		t.Errorf("no diagnosis:\n%s%s", stdout, stderr)
	}
	slices.Sort(all)
	return all
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
`
