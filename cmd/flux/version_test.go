package main

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/fakeapi"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	s := fake(t)
	s.Put(deploymentPath, controllerDeployment("source-controller", "v1.9.5", 1))
	s.Put(deploymentPath, controllerDeployment("helm-controller", "v1.6.4", 0))
	own := "flux: v" + version + "\n"
	yaml := own + "distribution: flux-v2.9.5\nhelm-controller: v1.6.4\nsource-controller: v1.9.5\n"
	expect(t, flux(t.Context(), s, "version"), outcome{Out: yaml})
	expect(t, flux(t.Context(), s, "version", "-o", "yaml"), outcome{Out: yaml})
	expect(t, flux(t.Context(), s, "version", "-o", "json"), outcome{Out: `{
  "distribution": "flux-v2.9.5",
  "flux": "v` + version + `",
  "helm-controller": "v1.6.4",
  "source-controller": "v1.9.5"
}
`})
	if got := len(s.Requests()); got != 3 {
		t.Errorf("%d requests for three answers", got)
	}
	expect(t, flux(t.Context(), s, "version", "--client"), outcome{Out: own})
	expect(t, flux(t.Context(), s, "version", "-o", "xml"), outcome{1, "", "✗ output format \"xml\" is not known: use yaml or json\n"})
	if got := len(s.Requests()); got != 3 {
		t.Errorf("%d requests for what needs no cluster", got-3)
	}
}

func TestVersionOfClientComesAlsoWithoutCluster(t *testing.T) {
	t.Parallel()
	s := fake(t)
	own := "flux: v" + version + "\n"
	expect(t, flux(t.Context(), s, "version"), outcome{1, own, "✗ no controllers of Flux found in namespace \"flux-system\"\n" +
		"  install it with 'flux install'; 'flux version --client' needs no cluster\n"})
	s.Put(crdPath, crd("GitRepository", partOfFlux(kube.InstanceLabel, "infra"), "v1", "v1"))
	expect(t, flux(t.Context(), s, "version"), outcome{1, own, "✗ no controllers of Flux found in namespace \"flux-system\"\n" +
		"  it is installed in namespace \"infra\": add -n infra\n"})
	s.Handle("GET "+deploymentPath, func(w http.ResponseWriter, _ *http.Request) {
		fakeapi.Status(w, http.StatusForbidden, "Forbidden", `deployments.apps is forbidden: User "bob" cannot list resource "deployments"`)
	})
	expect(t, flux(t.Context(), s, "version"), outcome{1, own, "✗ listing the controllers in namespace \"flux-system\": " +
		"deployments.apps is forbidden: User \"bob\" cannot list resource \"deployments\"\n"})
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, image := range []string{"ghcr.io/fluxcd/a:v1", "localhost:5000/a", "localhost:5000/a:v1@sha256:00", "a@sha256:00"} {
		got[image] = tagOf(image)
	}
	want := map[string]string{"ghcr.io/fluxcd/a:v1": "v1", "localhost:5000/a": "", "localhost:5000/a:v1@sha256:00": "v1", "a@sha256:00": "sha256:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
