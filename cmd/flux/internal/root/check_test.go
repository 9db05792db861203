package root

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/test/support/testflux"
)

const sourceLines = `✔ buckets.source.toolkit.fluxcd.io/v1
✔ externalartifacts.source.toolkit.fluxcd.io/v1
✔ gitrepositories.source.toolkit.fluxcd.io/v1
✔ helmcharts.source.toolkit.fluxcd.io/v1
✔ helmrepositories.source.toolkit.fluxcd.io/v1
✔ ocirepositories.source.toolkit.fluxcd.io/v1
`

func TestCheckPassesInThreeRequests(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	testflux.AddSourceKinds(s)
	s.Put(testflux.DeploymentPath, testflux.Deployment("source-controller", "v1.10.1", 1))
	expect(t, flux(t.Context(), s, "check"), outcome{Err: `► checking prerequisites
✔ Kubernetes 1.36.3 >=1.36.1-0
► checking version in cluster
✔ distribution: flux-v2.10.0
✔ bootstrapped: false
► checking controllers
✔ source-controller: deployment ready
► ghcr.io/fluxcd/source-controller:v1.10.1
► checking crds
` + sourceLines + `✔ all checks passed
`})
	got := s.Requests()
	slices.Sort(got)
	want := []string{"GET " + testflux.CRDPath, "GET " + testflux.DeploymentPath, "GET /version"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests -want +got:\n%s", diff)
	}
}

func TestCheckPre(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	expect(t, flux(t.Context(), s, "check", "--pre"), outcome{Err: "► checking prerequisites\n✔ Kubernetes 1.36.3 >=1.36.1-0\n✔ prerequisites checks passed\n"})
	testflux.ServeVersion(s, "v1.35.2-gke.100")
	expect(t, flux(t.Context(), s, "check", "--pre"), outcome{Err: "► checking prerequisites\n✔ Kubernetes 1.35.2-gke.100 >=1.35.2-0\n✔ prerequisites checks passed\n"})
	testflux.ServeVersion(s, "v1.34.1")
	expect(t, flux(t.Context(), s, "check", "--pre"), outcome{1, "", "► checking prerequisites\n✗ Kubernetes 1.34.1 is too old: Flux 2.10.0 requires >=1.35.2-0\n" +
		"  upgrade the cluster, or install Flux 2.9.6, which supports it, with --version=2.9.6\n✗ check failed\n"})
	testflux.ServeVersion(s, "v1.32.9")
	expect(t, flux(t.Context(), s, "check", "--pre"), outcome{1, "", "► checking prerequisites\n✗ Kubernetes 1.32.9 is too old: Flux 2.10.0 requires >=1.35.2-0\n✗ check failed\n"})
	if diff := cmp.Diff([]string{"GET /version", "GET /version", "GET /version", "GET /version"}, s.Requests()); diff != "" {
		t.Errorf("requests: %s", diff)
	}
}

func TestCheckReportsMissingObjects(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	testflux.AddSourceKinds(s)
	s.Take(testflux.CRDPath, "buckets.source.toolkit.fluxcd.io")
	s.Put(testflux.CRDPath, testflux.CRD("GitRepository", testflux.Labels("kustomize.toolkit.fluxcd.io/name", "flux-system"), "v1beta2", "v1"))
	s.Put(testflux.CRDPath, testflux.CRD("HelmRelease", testflux.Labels(), "v2", "v2"))
	s.Put(testflux.DeploymentPath, testflux.Deployment("source-controller", "v1.10.1", 1))
	expect(t, flux(t.Context(), s, "check"), outcome{1, "", `► checking prerequisites
✔ Kubernetes 1.36.3 >=1.36.1-0
► checking version in cluster
✔ distribution: flux-v2.10.0
✔ bootstrapped: true
► checking controllers
✗ helm-controller: deployment missing in namespace "flux-system"
✔ source-controller: deployment ready
► ghcr.io/fluxcd/source-controller:v1.10.1
► checking crds
✔ externalartifacts.source.toolkit.fluxcd.io/v1
✗ gitrepositories.source.toolkit.fluxcd.io: objects may be stored as v1beta2, which is no longer served: run 'flux migrate'
✔ helmcharts.source.toolkit.fluxcd.io/v1
✔ helmreleases.helm.toolkit.fluxcd.io/v2
✔ helmrepositories.source.toolkit.fluxcd.io/v1
✔ ocirepositories.source.toolkit.fluxcd.io/v1
✗ buckets.source.toolkit.fluxcd.io: not found (required by source-controller): install it with 'flux install'
✗ check failed
`})
}

func TestCheckNamedComponents(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	testflux.AddSourceKinds(s)
	s.Put(testflux.DeploymentPath, testflux.Deployment("source-controller", "v1.10.1", 1))
	got := flux(t.Context(), s, "check", "--components=source-controller", "--components-extra=source-watcher")
	expect(t, got, outcome{1, "", `► checking prerequisites
✔ Kubernetes 1.36.3 >=1.36.1-0
► checking version in cluster
✔ distribution: flux-v2.10.0
✔ bootstrapped: false
► checking controllers
✗ source-watcher: deployment missing in namespace "flux-system"
✔ source-controller: deployment ready
► ghcr.io/fluxcd/source-controller:v1.10.1
► checking crds
` + sourceLines + `✗ check failed
`})
	before := len(s.Requests())
	expect(t, flux(t.Context(), s, "check", "--components=sauce-controller"), outcome{1, "", `✗ unknown component "sauce-controller"
  the components are source-controller, kustomize-controller, helm-controller, notification-controller, image-reflector-controller, image-automation-controller, source-watcher
`})
	if after := len(s.Requests()); after != before {
		t.Errorf("%d requests for an unknown component", after-before)
	}
}

func TestCheckReportsTheCauseOfAnUnreadyController(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	testflux.AddSourceKinds(s)
	s.Serve("/apis/apps/v1/namespaces/flux-system/replicasets")
	s.Put(testflux.DeploymentPath, testflux.Deployment("source-controller", "v1.10.1", 0))
	s.Put(testflux.PodPath, map[string]any{
		"metadata": map[string]any{
			"name": "source-controller-abc-x", "namespace": "flux-system", "labels": map[string]any{"pod-template-hash": "abc"},
			"ownerReferences": []any{map[string]any{"kind": "ReplicaSet", "name": "source-controller-abc", "controller": true}},
		},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/source-controller:v1.10.1"}}},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available.",
		}}},
	})
	expect(t, flux(t.Context(), s, "check"), outcome{1, "", `► checking prerequisites
✔ Kubernetes 1.36.3 >=1.36.1-0
► checking version in cluster
✔ distribution: flux-v2.10.0
✔ bootstrapped: false
► checking controllers
✗ source-controller: deployment not ready: pod source-controller-abc-x is unschedulable: 0/1 nodes are available.
  add a node, free resources on one, or tolerate its taints (--toleration-keys of install and bootstrap)
► ghcr.io/fluxcd/source-controller:v1.10.1
► checking crds
` + sourceLines + `✗ check failed
`})
}

func TestCheckWarnsOfAControllerScaledToZero(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	testflux.AddSourceKinds(s)
	d := testflux.Deployment("source-controller", "v1.10.1", 0)
	d["spec"].(map[string]any)["replicas"] = 0
	d["status"] = map[string]any{"observedGeneration": 1}
	s.Put(testflux.DeploymentPath, d)
	lines := `► checking prerequisites
✔ Kubernetes 1.36.3 >=1.36.1-0
► checking version in cluster
✔ distribution: flux-v2.10.0
✔ bootstrapped: false
► checking controllers
⚠️ source-controller: deployment scaled to zero: its resources are not reconciled
  kubectl -n flux-system scale deployment source-controller --replicas=1
► ghcr.io/fluxcd/source-controller:v1.10.1
► checking crds
` + sourceLines
	expect(t, flux(t.Context(), s, "check"), outcome{Err: lines + "✔ all checks passed, with warnings (1)\n"})
	expect(t, flux(t.Context(), s, "check", "--strict"), outcome{1, "", lines + "✗ check failed: 1 warning(s) with --strict\n"})
	s.Take(testflux.DeploymentPath, "source-controller")
	got := flux(t.Context(), s, "check")
	if got.Code != 1 || !strings.Contains(got.Err, "✗ source-controller: deployment missing") {
		t.Errorf("check passes without source-controller: %+v", got)
	}
}
