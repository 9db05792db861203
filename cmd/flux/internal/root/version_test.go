package root

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testflux"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := testflux.New(t)
	s.Put(testflux.DeploymentPath, testflux.Deployment("source-controller", "v1.10.1", 1))
	s.Put(testflux.DeploymentPath, testflux.Deployment("helm-controller", "v1.7.1", 0))
	own := "flux: v" + app.DevVersion + "\n"
	yaml := own + "distribution: flux-v2.10.0\nhelm-controller: v1.7.1\nsource-controller: v1.10.1\n"
	expect(t, flux(t.Context(), s, "version"), outcome{Out: yaml})
	expect(t, flux(t.Context(), s, "version", "-o", "yaml"), outcome{Out: yaml})
	expect(t, flux(t.Context(), s, "version", "-o", "json"), outcome{Out: `{
  "distribution": "flux-v2.10.0",
  "flux": "v` + app.DevVersion + `",
  "helm-controller": "v1.7.1",
  "source-controller": "v1.10.1"
}
`})
	a := app.New(strings.NewReader(""), &out, &out, func(string) string { return "" }, time.Now)
	a.Client, a.Build.Commit = func() (*kube.Client, error) { return s.Client, nil }, "6f9a1b2"
	if code := Run(t.Context(), a, []string{"version", "-o", "json"}); code != 0 || strings.Contains(out.String(), "commit") {
		t.Errorf("exit code %d, or keys that are not components:\n%s", code, &out)
	}
	if got := len(s.Requests()); got != 4 {
		t.Errorf("%d requests of four commands", got)
	}
	expect(t, flux(t.Context(), s, "version", "--client"), outcome{Out: own})
	expect(t, flux(t.Context(), s, "version", "-o", "xml"), outcome{1, "", "✗ unknown output format \"xml\": must be one of yaml, json\n"})
	out.Reset()
	if code := Run(t.Context(), a, []string{"version", "--client", "-o", "json"}); code != 0 || !strings.Contains(out.String(), `"commit": "6f9a1b2"`) {
		t.Errorf("exit code %d, or no commit:\n%s", code, &out)
	}
	if got := len(s.Requests()); got != 4 {
		t.Errorf("%d requests of commands that need no cluster", got-4)
	}
}

func TestVersionPrintsTheClientVersionWithoutCluster(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	own := "flux: v" + app.DevVersion + "\n"
	expect(t, flux(t.Context(), s, "version"), outcome{1, own, "✗ no Flux controllers found in namespace \"flux-system\"\n" +
		"  install it with 'flux install'; 'flux version --client' does not require a cluster\n"})
	s.Put(testflux.CRDPath, testflux.CRD("GitRepository", testflux.Labels(kube.InstanceLabel, "infra"), "v1", "v1"))
	expect(t, flux(t.Context(), s, "version"), outcome{1, own, "✗ no Flux controllers found in namespace \"flux-system\"\n" +
		"  Flux is installed in namespace \"infra\": use -n infra\n"})
	s.Handle("GET "+testflux.DeploymentPath, func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Status(w, http.StatusForbidden, "Forbidden", `deployments.apps is forbidden: User "bob" cannot list resource "deployments"`)
	})
	expect(t, flux(t.Context(), s, "version"), outcome{1, own, "✗ listing the controllers in namespace \"flux-system\": " +
		"deployments.apps is forbidden: User \"bob\" cannot list resource \"deployments\"\n"})
}
