package root

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testflux"
)

// unchanged fails the test if a request other than an access review may have
// changed the cluster.
func unchanged(t *testing.T, s *fakeapi.Server) {
	t.Helper()
	for _, r := range s.Requests() {
		if !strings.HasPrefix(r, "GET ") && r != "POST "+testflux.ReviewPath {
			t.Errorf("changed the cluster: %s", r)
		}
	}
}

const built = "✚ generating manifests\n✔ manifests build completed\n"

func TestInstallRefusesBeforeChangingAnything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*fakeapi.Server)
		args    []string
		err     string
	}{
		"old cluster": {
			prepare: func(s *fakeapi.Server) { testflux.ServeVersion(s, "v1.30.1") },
			err: built + "✗ Kubernetes 1.30.1 is too old for Flux v2.10.0, which requires >=1.35.2-0\n" +
				"  upgrade the cluster, or install an older Flux with --version or --manifests\n",
		},
		"bootstrapped": {
			prepare: func(s *fakeapi.Server) {
				s.Put(testflux.CRDPath, testflux.CRD("GitRepository", testflux.Labels(kube.BootstrapLabel, "flux-system"), "v1", "v1"))
			},
			err: built + "✗ Flux v2.10.0 was bootstrapped from a Git repository\n" +
				"  upgrade Flux with 'flux bootstrap', or use --force\n",
		},
		"managed by another tool": {
			prepare: func(s *fakeapi.Server) {
				s.Put(testflux.CRDPath, testflux.CRD("GitRepository", testflux.Labels(kube.ManagedByLabel, "Helm"), "v1", "v1"))
			},
			err: built + "✗ Flux v2.10.0 on this cluster is managed by Helm\n  upgrade Flux with that tool, or use --force\n",
		},
		"removal under way": {
			prepare: func(s *fakeapi.Server) {
				s.Put(testflux.NamespacePath, controllers.Object{"metadata": map[string]any{"name": "flux-system", "deletionTimestamp": "2026-11-01T10:00:00Z"}})
			},
			err: built + "✗ an earlier removal is incomplete: flux-system is being deleted\n" +
				"  run 'flux uninstall', which reports the blocking finalizers, then install again\n",
		},
		"downgrade": {
			prepare: func(s *fakeapi.Server) {
				s.Put(testflux.CRDPath, testflux.CRD("GitRepository", testflux.Labels(), "v1", "v1"))
				s.Put(testflux.CRDPath, testflux.CRD("Alert", testflux.Labels(), "v1", "v1beta3", "v1"))
			},
			args: []string{"--version=2.9"},
			err: built + "✗ Flux v2.9.6 cannot replace Flux v2.10.0: its CustomResourceDefinition alerts.notification.toolkit.fluxcd.io has no version v1, " +
				"at which the cluster stores objects\n" +
				"  keep Flux v2.10.0 or later; to downgrade, run 'flux uninstall' first: it deletes the Flux resources and keeps what they have applied\n",
		},
		"unknown component": {
			args: []string{"--components-extra=imagine-controller"},
			err: "✚ generating manifests\n✗ unknown component \"imagine-controller\"\n" +
				"  the components are source-controller, kustomize-controller, helm-controller, notification-controller, image-reflector-controller, image-automation-controller, source-watcher\n",
		},
		"unknown log level": {
			args: []string{"--log-level=loud"},
			err:  "✗ invalid argument \"loud\" for \"--log-level\" flag: must be one of debug, info, error\n",
		},
		"minor version that is not embedded": {
			args: []string{"--version=2.7"},
			err:  "✚ generating manifests\n✗ invalid version \"2.7\": must be 2.10, 2.9 or 2.8, a version such as v2.10.0, or latest\n",
		},
		"credentials without a name": {
			args: []string{"--registry-creds=me:secret"},
			err:  "✚ generating manifests\n✗ --registry-creds requires --image-pull-secret, the name of the Secret to create\n",
		},
		"credentials without a password": {
			args: []string{"--registry-creds=secret", "--image-pull-secret=regs"},
			err:  "✚ generating manifests\n✗ --registry-creds must have the form user:password\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testflux.New(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			expect(t, flux(t.Context(), s, append([]string{"install"}, c.args...)...), outcome{1, "", c.err})
			unchanged(t, s)
		})
	}
}

func TestInstallNamesMissingPermissions(t *testing.T) {
	t.Parallel()
	s := testflux.New(t)
	testflux.Allow(s, false)
	got := flux(t.Context(), s, "install", "--components=source-controller")
	want := built + `✗ no permission to create, patch, list namespaces; ` +
		`create, patch networkpolicies.networking.k8s.io in namespace "flux-system"; ` +
		`create, patch resourcequotas in namespace "flux-system"; ` +
		`create, patch clusterroles.rbac.authorization.k8s.io; create, patch clusterrolebindings.rbac.authorization.k8s.io; ` +
		`create, patch, list, watch customresourcedefinitions.apiextensions.k8s.io; ` +
		`create, patch serviceaccounts in namespace "flux-system"; create, patch services in namespace "flux-system"; ` +
		`create, patch, list, watch deployments.apps in namespace "flux-system"` + "\n"
	expect(t, got, outcome{1, "", want})
	unchanged(t, s)
}

func TestInstallExportNeedsNoCluster(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t) // knows no request
	o := manifests.Defaults()
	o.Components = []string{"source-controller", "source-watcher"}
	o.Namespace, o.NetworkPolicy, o.LogLevel = "infra", false, "debug"
	set, err := manifests.Render(o)
	if err != nil {
		t.Fatalf("%v\n(in a checkout: run `make manifests` first)", err)
	}
	text, err := set.YAML()
	if err != nil {
		t.Fatal(err)
	}
	got := flux(t.Context(), s, "install", "--export", "-n", "infra", "--components=source-controller",
		"--components-extra=source-watcher,source-controller", "--network-policy=false", "--log-level=debug", "--version=v2.10.0")
	expect(t, got, outcome{Out: string(text)})
}
