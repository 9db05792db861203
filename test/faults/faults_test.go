package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// world is a cluster without controllers and a flux binary.
type world struct {
	bin     string
	cluster *testcluster.Cluster
	// kills counts the processes that were killed.
	kills atomic.Int64
}

// TestFaults first runs the faults of single requests concurrently, then replaces the server.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t), cluster: sandboxes.Acquire(t, testcluster.Whole)}
	if err := w.cluster.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("the server is up", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, string){
			"watch of a forgotten version":  w.forgotten,
			"a busy server":                 w.busy,
			"one name of ten is missing":    w.oneMissing,
			"some kinds are forbidden":      w.someForbidden,
			"lists that are cut":            w.cutLists,
			"a permanent error":             w.permanent,
			"a refused watch":               w.refusedWatch,
			"a token that expires":          w.expelled,
			"what is not idempotent":        w.notTwice,
			"interrupt of a watch":          w.interruptedWatch,
			"interrupt of a reconciliation": w.interruptedReconcile,
			"interrupt of a bootstrap":      w.interruptedBootstrap,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				namespace := strings.ReplaceAll(name, " ", "-")
				w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
				test(t, namespace)
			})
		}
	})
	t.Run("passing", w.passing)
	t.Run("hanging", w.hanging)
	t.Run("prompting", w.prompting)
	t.Run("git", w.git)
	t.Run("the server is replaced", w.replaced)
}

func (w *world) seed(t *testing.T, namespace, manifest string) {
	t.Helper()
	if err := w.cluster.Seed(t.Context(), []byte(manifest), namespace); err != nil {
		t.Fatal(err)
	}
}

// kustomizations creates objects that have applied main@sha1:1.
func (w *world) kustomizations(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		w.seed(t, namespace, fmt.Sprintf(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s}
spec: {interval: 10m, path: ./app, prune: true, sourceRef: {kind: GitRepository, name: app}}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:1
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, message: "first of %s", lastTransitionTime: "2026-11-01T10:00:00Z"}]
`, name, name))
	}
}

func kustomization() (controllers.Kind, kube.Resource) {
	k, _ := controllers.FindKind("Kustomization")
	return k, kube.Of(k)
}

// say writes a Ready condition like the controller, and handles a pending reconciliation request.
func (w *world) say(t *testing.T, namespace, name, message string) {
	t.Helper()
	_, r := kustomization()
	o, err := w.cluster.Client.Get(t.Context(), r, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	generation, _ := controllers.Path{"metadata.generation"}.Lookup(o)
	status := map[string]any{
		"observedGeneration": generation, "lastAppliedRevision": "main@sha1:2",
		"lastHandledReconcileAt": controllers.Annotation(o, "reconcile.fluxcd.io/requestedAt"),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": message, "lastTransitionTime": "2026-11-01T11:00:00Z",
		}},
	}
	if err := w.cluster.Client.PatchStatus(t.Context(), r, namespace, name, status); err != nil {
		t.Fatal(err)
	}
}

// answer handles the reconciliation requests of a Kustomization until the test ends,
// like its controller.
func (w *world) answer(t *testing.T, namespace, name string) {
	t.Helper()
	k, _ := kustomization()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- w.cluster.Answer(ctx, k, namespace, name, controllers.Condition{Status: "True", Reason: "ReconciliationSucceeded", Message: "answered"})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("answering for %s: %v", name, err)
		}
	})
}

func (w *world) remove(t *testing.T, namespace, name string) {
	t.Helper()
	_, r := kustomization()
	if err := w.cluster.Client.Remove(t.Context(), r, namespace, name); err != nil {
		t.Fatal(err)
	}
}

func (w *world) proxy(t *testing.T) *testcluster.Proxy {
	t.Helper()
	p, err := testcluster.NewProxy(w.cluster, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// first responds to the first request of each kind instead of the server and records the order of all
// requests.
type first struct {
	mu       sync.Mutex
	answered map[string]bool
	requests []string
}

func sort(r *http.Request) string {
	switch {
	case r.URL.Query().Get("watch") == "true":
		return "watch"
	case r.Method == http.MethodGet:
		return "list"
	default:
		return strings.ToLower(r.Method)
	}
}

func (f *first) answer(sorts []string, with func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	f.answered = map[string]bool{}
	for _, s := range sorts {
		f.answered[s] = false
	}
	return func(w http.ResponseWriter, r *http.Request) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		s := sort(r)
		f.requests = append(f.requests, s)
		answered, meant := f.answered[s]
		if !meant || answered {
			return false
		}
		f.answered[s] = true
		with(w)
		return true
	}
}

func (f *first) order() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.requests, " ")
}

// forgotten checks that flux lists again after a 410 on the first watch, and does not
// print unchanged objects again.
func (w *world) forgotten(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app", "same")
	proxy, f := w.proxy(t), &first{}
	proxy.Misbehave(f.answer([]string{"watch"}, func(rw http.ResponseWriter) {
		w.say(t, namespace, "app", "second of app")
		fakeapi.Status(rw, http.StatusGone, "Expired", "too old resource version")
	}))
	p := w.start(t, proxy.Kubeconfig, "get", "ks", "-n", namespace, "--watch")
	p.until(p.stdout, "second of app")
	w.say(t, namespace, "app", "third of app")
	p.until(p.stdout, "third of app")
	p.interrupt()
	if n := strings.Count(p.stdout.String(), "first of same"); n != 1 {
		p.fatalf("the unchanged object is printed %d times", n)
	}
	if got, want := f.order(), "list watch list watch"; got != want {
		p.fatalf("requests: %s, want %s", got, want)
	}
}

// busy checks that a 429 with Retry-After only delays each kind of request.
func (w *world) busy(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	refuse := func(rw http.ResponseWriter) {
		rw.Header().Set("Retry-After", "1")
		fakeapi.Status(rw, http.StatusTooManyRequests, "TooManyRequests", "later")
	}
	proxy, f := w.proxy(t), &first{}
	proxy.Misbehave(f.answer([]string{"list"}, refuse))
	p := w.start(t, proxy.Kubeconfig, "get", "ks", "app", "-n", namespace)
	p.exits(0)
	if got, want := f.order(), "list list"; got != want || !strings.Contains(p.stdout.String(), "first of app") {
		p.fatalf("requests: %s, want %s", got, want)
	}
	proxy, f = w.proxy(t), &first{}
	proxy.Misbehave(f.answer([]string{"patch", "watch"}, refuse))
	p = w.start(t, proxy.Kubeconfig, "reconcile", "ks", "app", "-n", namespace)
	p.until(p.stderr, "waiting for Kustomization")
	w.say(t, namespace, "app", "second of app")
	p.exits(0)
	if got, want := f.order(), "patch patch watch watch"; got != want {
		p.fatalf("requests: %s, want %s", got, want)
	}
}

// oneMissing checks that the nine other objects are processed, and that the exit code is 1.
func (w *world) oneMissing(t *testing.T, namespace string) {
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("app-%d", i))
	}
	w.kustomizations(t, namespace, names...)
	asked := append([]string{"absent"}, names...)
	for _, words := range [][]string{{"get", "ks"}, {"reconcile", "ks", "--wait=false"}, {"suspend", "ks"}} {
		p := w.start(t, w.cluster.Kubeconfig, append(append(words, asked...), "-n", namespace)...)
		p.exits(1)
		if !strings.Contains(p.stderr.String(), "absent") {
			p.fatalf("the missing name is not reported")
		}
		for _, name := range names {
			if !strings.Contains(p.stdout.String()+p.stderr.String(), name) {
				p.fatalf("%s is not reported", name)
			}
		}
	}
	k, r := kustomization()
	for _, name := range names {
		o, err := w.cluster.Client.Get(t.Context(), r, namespace, name)
		if err != nil || !k.Suspension.Is(o) {
			t.Errorf("%s is not suspended: %v", name, err)
		}
		if controllers.Annotation(o, "reconcile.fluxcd.io/requestedAt") == "" {
			t.Errorf("no reconciliation of %s was requested", name)
		}
	}
}

// someForbidden checks that permitted kinds are listed, forbidden ones reported, and the exit code is 1.
func (w *world) someForbidden(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	w.seed(t, namespace, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: some}
rules: [{apiGroups: [kustomize.toolkit.fluxcd.io], resources: [kustomizations], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: some}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: some}
subjects: [{kind: User, name: some, apiGroup: rbac.authorization.k8s.io}]
`)
	p := w.start(t, w.cluster.Kubeconfig, "get", "all", "-n", namespace, "--as=some")
	p.exits(1)
	if !strings.Contains(p.stdout.String(), "kustomization/app") {
		p.fatalf("the permitted object is not printed")
	}
	for _, k := range controllers.Kinds {
		if k.Family == "artifact" || k.Kind == "Kustomization" {
			continue
		}
		if n := strings.Count(p.stderr.String(), k.Resource); n != 1 {
			p.fatalf("%s is reported %d times", k.Resource, n)
		}
	}
	if n := strings.Count(p.stderr.String(), "cannot list"); n != 1 {
		p.fatalf("the missing permissions are reported in %d lines", n)
	}
	watch := w.start(t, w.cluster.Kubeconfig, "get", "all", "-n", namespace, "--as=some", "--watch")
	watch.until(watch.stdout, "first of app")
	w.say(t, namespace, "app", "second of app")
	watch.until(watch.stdout, "second of app")
	watch.interrupt()
}

func (w *world) interruptedWatch(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	p := w.start(t, w.cluster.Kubeconfig, "get", "ks", "-n", namespace, "--watch")
	p.until(p.stdout, "first of app")
	p.interrupt()
}

func (w *world) interruptedReconcile(t *testing.T, namespace string) {
	w.kustomizations(t, namespace, "app")
	p := w.start(t, w.cluster.Kubeconfig, "reconcile", "ks", "app", "-n", namespace)
	p.until(p.stderr, "waiting for Kustomization")
	p.interrupt()
}

// interruptedBootstrap interrupts the wait for a GitRepository that no controller reconciles.
func (w *world) interruptedBootstrap(t *testing.T, _ string) {
	w.cluster.Sandbox(t, "git", "create", "fleet")
	p := w.start(t, w.cluster.Kubeconfig, "bootstrap", "git", "--url="+w.cluster.Env["FLUX_SANDBOX_GIT_URL"]+"/fleet.git", "--allow-insecure-http",
		"--path=clusters/test", "--username=dev", "--password=any", "--token-auth", "--silent")
	p.until(p.stderr, "waiting for GitRepository")
	p.interrupt()
}
