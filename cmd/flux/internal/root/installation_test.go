package root

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testflux"
)

// site runs flux against a real API server.
type site struct {
	*testing.T
	cluster    *testcluster.Cluster
	kubeconfig string
}

func (s site) flux(args ...string) outcome {
	s.Helper()
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(string) string { return "" }, time.Now)
	code := Run(s.Context(), a, append(args, "--kubeconfig", s.kubeconfig))
	return outcome{code, out.String(), err.String()}
}

// image returns the image of a controller in the embedded manifests.
func image(name string) string {
	return "ghcr.io/fluxcd/" + name + ":" + controllers.DefaultDistribution().Tags[name]
}

func (s site) names(r kube.Resource, selection kube.Selection) []string {
	s.Helper()
	names := []string{}
	if _, err := s.cluster.Client.List(s.Context(), r, selection, func(o controllers.Object) error {
		names = append(names, controllers.Name(o))
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestInstallation installs, checks, breaks and uninstalls Flux on a real API
// server. Each step requires the previous one.
func TestInstallation(t *testing.T) {
	t.Parallel()
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	s := site{t, cluster, cluster.Kubeconfig}

	s.refuseForbidden()
	s.install()
	s.check()
	s.breakController()
	s.uninstall()
}

// refuseForbidden installs as a user without permissions and checks that no
// namespace is created.
func (s site) refuseForbidden() {
	got := s.flux("install", "--as", "guest", "--components", "source-controller", "--network-policy=false")
	expect(s.T, got, outcome{1, "", built + "✗ no permission to create, patch, list namespaces; " +
		"create, patch resourcequotas in namespace \"flux-system\"; " +
		"create, patch clusterroles.rbac.authorization.k8s.io; create, patch clusterrolebindings.rbac.authorization.k8s.io; " +
		"create, patch, list, watch customresourcedefinitions.apiextensions.k8s.io; " +
		"create, patch serviceaccounts in namespace \"flux-system\"; create, patch services in namespace \"flux-system\"; " +
		"create, patch, list, watch deployments.apps in namespace \"flux-system\"\n"})
	if left := s.names(kube.BuiltIn("v1", "Namespace"), kube.Selection{Name: "flux-system"}); len(left) > 0 {
		s.Errorf("left behind: %v", left)
	}
}

func (s site) install() {
	want := outcome{Err: `✚ generating manifests
✔ manifests build completed
► installing components in flux-system namespace
◎ verifying installation
✔ helm-controller: deployment ready
✔ kustomize-controller: deployment ready
✔ notification-controller: deployment ready
✔ source-controller: deployment ready
✔ install finished
`}
	for range 2 { // the second run changes nothing and prints the same
		got := s.flux("install")
		lines := strings.SplitAfter(got.Err, "\n")
		if len(lines) > 8 {
			slices.Sort(lines[4:8]) // the controllers become ready in any order
		}
		got.Err = strings.Join(lines, "")
		expect(s.T, got, want)
	}
}

// check checks the output and that flux check sends three requests.
func (s site) check() {
	proxy, err := testcluster.NewProxy(s.cluster, 0)
	if err != nil {
		s.Fatal(err)
	}
	var requests []string
	proxy.OnRequest(func(method, uri string) {
		path, _, _ := strings.Cut(uri, "?")
		requests = append(requests, method+" "+path)
	})
	through := site{s.T, s.cluster, proxy.Kubeconfig}
	got := through.flux("check")
	if err := proxy.Close(); err != nil {
		s.Error(err)
	}
	expect(s.T, got, outcome{Err: `► checking prerequisites
✔ Kubernetes 1.36.3 >=1.36.1-0
► checking version in cluster
✔ distribution: flux-v` + controllers.DefaultVersion + `
✔ bootstrapped: false
► checking controllers
✔ helm-controller: deployment ready
► ` + image("helm-controller") + `
✔ kustomize-controller: deployment ready
► ` + image("kustomize-controller") + `
✔ notification-controller: deployment ready
► ` + image("notification-controller") + `
✔ source-controller: deployment ready
► ` + image("source-controller") + `
► checking crds
✔ alerts.notification.toolkit.fluxcd.io/v1
✔ buckets.source.toolkit.fluxcd.io/v1
✔ externalartifacts.source.toolkit.fluxcd.io/v1
✔ gitrepositories.source.toolkit.fluxcd.io/v1
✔ helmcharts.source.toolkit.fluxcd.io/v1
✔ helmreleases.helm.toolkit.fluxcd.io/v2
✔ helmrepositories.source.toolkit.fluxcd.io/v1
✔ kustomizations.kustomize.toolkit.fluxcd.io/v1
✔ ocirepositories.source.toolkit.fluxcd.io/v1
✔ providers.notification.toolkit.fluxcd.io/v1
✔ receivers.notification.toolkit.fluxcd.io/v1
✔ all checks passed
`})
	slices.Sort(requests)
	if diff := cmp.Diff([]string{"GET " + testflux.CRDPath, "GET " + testflux.DeploymentPath, "GET /version"}, requests); diff != "" {
		s.Errorf("requests -want +got:\n%s", diff)
	}
}

// breakController installs manifests with a source-controller image that cannot be
// pulled. install and check report the cause before the timeout.
func (s site) breakController() {
	set, err := manifests.Render(manifests.Defaults())
	if err != nil {
		s.Fatal(err)
	}
	text, err := set.YAML()
	if err != nil {
		s.Fatal(err)
	}
	// The source-controller comes first.
	annotated := strings.Replace(string(text), "      annotations:\n", "      annotations:\n        sandbox.fluxkit.dev/state: image-pull-error\n", 1)
	if annotated == string(text) {
		s.Fatal("the manifests have no pod annotations")
	}
	file := filepath.Join(s.TempDir(), "flux.yaml")
	if err := os.WriteFile(file, []byte(annotated), 0o600); err != nil {
		s.Fatal(err)
	}
	cause := "✗ source-controller: deployment not ready: the image \"" + image("source-controller") + "\" cannot be pulled: not found\n"
	const remedy = "check the image name and the pull Secret, and that the nodes can reach the registry (--registry and --image-pull-secret of install and bootstrap)\n"
	got := s.flux("install", "--manifests", file)
	if !strings.HasSuffix(got.Err, cause+"  Fix\n    "+remedy) || got.Code != 1 {
		s.Errorf("install: exit code %d\n%s", got.Code, got.Err)
	}
	got = s.flux("check")
	if want := cause + "  " + remedy + "► " + image("source-controller") + "\n► checking crds\n"; !strings.Contains(got.Err, want) || got.Code != 1 {
		s.Errorf("check: exit code %d\n%s", got.Code, got.Err)
	}
}

// uninstall checks that all objects of Flux are deleted and other objects are
// kept.
func (s site) uninstall() {
	source := []byte(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app, namespace: default, finalizers: [finalizers.fluxcd.io]}
spec: {interval: 1m, url: https://example.com/app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mine, namespace: default}
`)
	if err := s.cluster.Seed(s.Context(), source, ""); err != nil {
		s.Fatal(err)
	}
	if got := s.flux("uninstall"); got.Code != 1 || !strings.Contains(got.Err, "--yes") {
		s.Errorf("without a terminal and --yes: %d\n%s", got.Code, got.Err)
	}
	got := s.flux("uninstall", "--silent")
	if !strings.Contains(got.Err, "✔ GitRepository/default/app finalizers deleted\n") ||
		!strings.HasSuffix(got.Err, "✔ Namespace/flux-system deleted\n✔ uninstall finished\n") || got.Code != 0 {
		s.Errorf("uninstall: exit code %d\n%s", got.Code, got.Err)
	}
	left := s.names(kube.CRDs(), kube.Selection{})
	left = append(left, s.names(kube.BuiltIn("v1", "Namespace"), kube.Selection{Name: "flux-system"})...)
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		left = append(left, s.names(kube.BuiltIn("rbac.authorization.k8s.io/v1", kind), kube.Selection{Labels: kube.PartOfFlux})...)
	}
	if len(left) > 0 {
		s.Errorf("left behind: %v", left)
	}
	if got := s.names(kube.BuiltIn("v1", "ConfigMap"), kube.Selection{Namespace: "default", Name: "mine"}); len(got) != 1 {
		s.Error("the ConfigMap of another owner was deleted")
	}
	expect(s.T, s.flux("uninstall", "--silent"), outcome{Err: "✔ Flux is not installed in namespace \"flux-system\": nothing to remove\n"})
}
