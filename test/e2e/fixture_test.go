package e2e_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// fixture is the environment of a test: a namespace of a cluster, a repository on its Git server, and a shell
// with access to both.
type fixture struct {
	t         *testing.T
	cluster   *testcluster.Cluster
	namespace string
	shell     *shell
	git       *gitClient
}

// newWhole returns a fixture with a separate sandbox, in which Flux is not installed.
func newWhole(t *testing.T) *fixture {
	t.Helper()
	testcluster.Programs(t) // before other tests wait for the slot
	return newFixture(t, sandboxes.Acquire(t, testcluster.WholeControllers), "fleet", "flux-system")
}

// newShared returns a fixture with a namespace of the shared sandbox. Its Git server requires the password in
// the Secret git.
func newShared(t *testing.T) *fixture {
	t.Helper()
	cluster := sandboxes.Acquire(t, testcluster.Controllers)
	f := newFixture(t, cluster, cluster.Namespace, cluster.Namespace)
	f.seed(gitSecret)
	return f
}

// newTeam returns a shared fixture whose flux uses its namespace by default.
func newTeam(t *testing.T) *fixture {
	t.Helper()
	f := newShared(t)
	f.shell = f.shell.with("FLUX_SYSTEM_NAMESPACE=" + f.namespace)
	return f
}

const gitSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: git}\nstringData: {username: " + testcluster.GitUser + ", password: " + testcluster.GitPassword + "}\n"

func newFixture(t *testing.T, cluster *testcluster.Cluster, repository, namespace string) *fixture {
	t.Helper()
	sh := newShell(t, "KUBECONFIG="+cluster.Kubeconfig, "FLUX_TIMEOUT="+ownTime.String())
	f := &fixture{t: t, cluster: cluster, namespace: namespace, shell: sh, git: newGit(sh, cluster, repository)}
	reportFailure(f)
	return f
}

// as returns the fixture for a subtest.
func (f *fixture) as(t *testing.T) *fixture {
	part := *f
	part.t, part.shell, part.git = t, f.shell.as(t), f.git.as(t)
	return &part
}

// in returns the fixture with another namespace, which does not have to exist.
func (f *fixture) in(namespace string) *fixture {
	part := *f
	part.namespace = namespace
	return &part
}

// seed applies objects, by default in the namespace, and writes their statuses.
func (f *fixture) seed(manifests string) {
	f.t.Helper()
	if err := f.cluster.Seed(f.t.Context(), []byte(manifests), f.namespace); err != nil {
		f.t.Fatal(err)
	}
}

// eventually watches the selected objects until done returns true.
func (f *fixture) eventually(what string, r kube.Resource, selection kube.Selection, done func(kube.Event) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), waitTime)
	defer cancel()
	last := map[string]controllers.Object{}
	err := f.cluster.Client.Follow(ctx, r, selection, "", func(e kube.Event) (bool, error) {
		last[named(e.Object)] = e.Object
		if e.Deleted {
			delete(last, named(e.Object))
		}
		return done(e), nil
	})
	if err != nil {
		f.t.Fatalf("waiting for %s: %v; last seen:\n%s", what, err, describe(last))
	}
}

var (
	configMaps  = kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	deployments = kube.ResourceFor(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	namespaces  = kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	pods        = kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	secrets     = kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
)

// resource returns the resource of a kind of Flux.
func resource(t *testing.T, kind string) kube.Resource {
	t.Helper()
	k, ok := controllers.FindKind(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	return kube.Of(k)
}

// text returns a field of an object.
func text(o controllers.Object, path string) string { return controllers.Path{path}.String(o) }

// named returns KIND/NAMESPACE/NAME of an object.
func named(o controllers.Object) string {
	words := []string{text(o, "kind"), controllers.Namespace(o), controllers.Name(o)}
	if words[1] == "" {
		words = []string{words[0], words[2]}
	}
	return strings.Join(words, "/")
}
