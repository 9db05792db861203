package failure_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// TestParse reads messages as the real components write them.
func TestParse(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]failure.Type{
		"Deployment/apps/web dry-run failed (Invalid): Deployment.apps \"web\" is invalid: spec.template.spec.containers[0].image: Required value\n":                                                                                               failure.Invalid,
		`Service/apps/sops-web dry-run failed (Invalid): Service "sops-web" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive`:                                                                          failure.Invalid,
		`failed to checkout and determine revision: unable to list remote for 'http://127.0.0.1:40123/fleet.git': Get "http://127.0.0.1:40123/fleet.git/info/refs?service=git-upload-pack": dial tcp 127.0.0.1:40123: connect: connection refused`: failure.Unreachable,
		`failed to checkout and determine revision: unable to clone 'http://127.0.0.1:80/fleet.git': couldn't find remote ref "refs/tags/build-14012"`:                                                                                             failure.NoRevision,
		`failed to determine artifact digest: GET http://127.0.0.1:5000/v2/app/manifests/20240119: MANIFEST_UNKNOWN: manifest unknown; unknown tag=20240119`:                                                                                       failure.NoRevision,
		`ConfigMap/a/b dry-run failed (Forbidden): configmaps "b" is forbidden: unable to create new content in namespace a because it is being terminated`:                                                                                        failure.Terminating,
		`failed to checkout source: unable to clone 'http://127.0.0.1/fleet.git': authentication required: Unauthorized`:                                                                                                                           failure.Unauthenticated,
		`health check failed after 10.03s: timeout waiting for: [Deployment/apps/sops-operator status: 'NotFound']`:                                                                                                                                failure.Unhealthy,
		`Helm install failed for release apps/web with chart app@0.1.0: unable to build kubernetes objects from release manifest: resource mapping not found for name: "x" namespace: "" from "": no matches for kind "Gizmo" in version "again.example.com/v1"
ensure CRDs are installed first`: failure.NoMatch,
		`Ingress/apps/web dry-run failed (Invalid): Ingress.networking.k8s.io "web" is invalid: spec.rules[0].http.paths[0].path: Invalid value: "conflict with \"x\": a": must be an absolute path`: failure.Invalid,
	} {
		if got := failure.Parse(message); got.Type != want {
			t.Errorf("%s\n is %q, not %q: %+v", message, got.Type, want, got)
		} else {
			t.Logf("%+v", got)
		}
	}
}
