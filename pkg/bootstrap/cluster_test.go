package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

const branch = "main"

// world is a namespace of a real API server and a repository on a real Git
// server. The controllers and their Deployments are simulated.
type world struct {
	t         *testing.T
	cluster   *testcluster.Cluster
	namespace string
	bare      string // the repository on the server's disk
	url       string

	mu sync.Mutex
	// fails has the reason and message of the Ready condition of each kind that fails.
	fails map[string][2]string
	// edits change the status that the controller of a kind reports.
	edits map[string]func(status map[string]any)
}

// edit makes the controller of a kind report another status from now on.
func (w *world) edit(kind string, change func(status map[string]any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.edits = map[string]func(map[string]any){kind: change}
}

// edited returns the status that the controller of a kind reports.
func (w *world) edited(kind string, status map[string]any) map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if change := w.edits[kind]; change != nil {
		change(status)
	}
	return status
}

// fail makes the controllers report these failures from now on, by kind.
func (w *world) fail(failures map[string][2]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = failures
}

// condition returns the Ready condition that the controller of a kind reports.
func (w *world) condition(kind string, generation any) map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := map[string]any{
		"type": "Ready", "status": "True", "reason": "Succeeded", "message": "simulated", "observedGeneration": generation,
		"lastTransitionTime": "2026-11-01T10:00:00Z",
	}
	if failure, ok := w.fails[kind]; ok {
		c["status"], c["reason"], c["message"] = "False", failure[0], failure[1]
	}
	return c
}

func newWorld(t *testing.T, cluster *testcluster.Cluster, name string) *world {
	t.Helper()
	cluster.Sandbox(t, "git", "create", name)
	w := &world{
		t: t, cluster: cluster, namespace: name,
		bare: filepath.Join(cluster.Dir, "git", name+".git"),
		url:  cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/" + name + ".git",
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for kind, status := range map[string]func(controllers.Object) map[string]any{"GitRepository": w.fetched, "Kustomization": w.applied} {
		running.Go(func() {
			if err := w.simulate(ctx, kind, status); !errors.Is(err, context.Canceled) {
				t.Errorf("simulating the controller of %s: %v", kind, err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

// simulate updates the status after each change and each request, as a
// controller does.
func (w *world) simulate(ctx context.Context, kind string, status func(controllers.Object) map[string]any) error {
	k, _ := controllers.FindKind(kind)
	res := kube.Of(k)
	attempts := map[string]bool{} // an edited status may never be the result of its request
	return w.cluster.Client.Follow(ctx, res, kube.Selection{Namespace: w.namespace}, "", func(e kube.Event) (bool, error) {
		token := controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt")
		handled := controllers.Path{"status.lastHandledReconcileAt"}.String(e.Object)
		generation, _ := controllers.Path{"metadata.generation"}.Lookup(e.Object)
		attempt := fmt.Sprint(controllers.Name(e.Object), generation, token)
		if e.Deleted || controllers.Observed(e.Object) && handled == token || attempts[attempt] {
			return false, nil
		}
		attempts[attempt] = true
		// A controller that is reconciling keeps its previous conditions.
		// The event may be older than the last status.
		o, err := w.cluster.Client.Get(ctx, res, w.namespace, controllers.Name(e.Object))
		if err != nil {
			return false, err
		}
		if earlier, ok := (controllers.Path{"status.conditions"}).Lookup(o); ok {
			reconciling := append(earlier.([]any), map[string]any{
				"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "reconciling", "lastTransitionTime": "2026-11-01T10:00:00Z",
			})
			if err := w.cluster.Client.PatchStatus(ctx, res, w.namespace, controllers.Name(e.Object), map[string]any{"conditions": reconciling}); err != nil {
				return false, err
			}
		}
		all := status(e.Object)
		all["observedGeneration"] = generation
		if token != "" {
			all["lastHandledReconcileAt"] = token
		}
		all["conditions"] = []any{w.condition(kind, generation)}
		return false, w.cluster.Client.PatchStatus(ctx, res, w.namespace, controllers.Name(e.Object), w.edited(kind, all))
	})
}

func (w *world) fetched(controllers.Object) map[string]any {
	return map[string]any{"artifact": map[string]any{
		"digest": "sha256:" + strings.Repeat("1", 64), "lastUpdateTime": "2026-11-01T10:00:00Z", "path": "a", "url": "http://example.com/a",
		"revision": w.revision(),
	}}
}

func (w *world) applied(controllers.Object) map[string]any {
	return map[string]any{"lastAppliedRevision": w.revision(), "lastAttemptedRevision": w.revision()}
}

func (w *world) revision() string { return branch + "@sha1:" + w.git(w.bare, "rev-parse", branch) }

// git runs Git without the configuration of the user and the system.
func (w *world) git(dir string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// log returns the authors and subjects of the branch, newest first; nil without commits.
func (w *world) log() []string {
	if w.git(w.bare, "for-each-ref") == "" {
		return nil
	}
	return strings.Split(w.git(w.bare, "log", "--format=%an <%ae> %s", branch), "\n")
}

// commit pushes files as the owner of the repository.
func (w *world) commit(files map[string]string) {
	w.t.Helper()
	work := w.t.TempDir()
	w.git(work, "init", "--quiet", "--initial-branch="+branch)
	if w.git(w.bare, "for-each-ref") != "" {
		w.git(work, "pull", "--quiet", w.bare, branch)
	}
	for name, content := range files {
		file := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.git(work, "add", ".")
	w.git(work, "-c", "user.name=Owner", "-c", "user.email=o@example.com", "commit", "--quiet", "-m", "Ours")
	w.git(work, "push", "--quiet", w.bare, branch)
}

// plan returns a plan with a user name and password.
func (w *world) plan() bootstrap.Plan {
	w.t.Helper()
	options := manifests.Defaults()
	options.Namespace = w.namespace
	set, err := manifests.Render(options)
	if err != nil {
		w.t.Fatal(err)
	}
	return bootstrap.Plan{
		Host:   githost.Git{Access: githost.Access{URL: w.url, Username: "ada", Password: "s3cret"}, TokenAuth: true},
		Branch: branch, Path: "clusters/demo", Components: set, TokenAuth: true,
		Commit: bootstrap.Commit{AuthorName: "Flux"},
		Sync:   bootstrap.Sync{Interval: time.Minute, SecretName: "flux-system"},
		Key:    bootstrap.Key{Algorithm: "ed25519"},
		Now:    time.Now,
	}
}

// run bootstraps with a timeout far above the usual duration.
func (w *world) run(plan bootstrap.Plan, wrap func(http.RoundTripper) http.RoundTripper) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), testlimit.Wait)
	defer cancel()
	cfg := rest.CopyConfig(w.cluster.Client.Config)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	var p progress
	_, err := bootstrap.Run(ctx, cfg, plan, &p)
	return p.text.String(), err
}

func (w *world) mustRun(plan bootstrap.Plan) string {
	w.t.Helper()
	text, err := w.run(plan, nil)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, text)
	}
	return text
}

// get returns an object of the namespace, nil if it does not exist.
func (w *world) get(apiVersion, kind, name string) controllers.Object {
	w.t.Helper()
	o, err := w.cluster.Client.Get(w.t.Context(), guess(apiVersion, kind), w.namespace, name)
	if err != nil {
		return nil
	}
	return o
}

// progress records the progress messages.
type progress struct {
	mu   sync.Mutex
	text strings.Builder
	// seen is called with each message, nil for nothing.
	seen func(message string)
}

func (p *progress) add(format string, args []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	message := fmt.Sprintf(format, args...)
	p.text.WriteString(message + "\n")
	if p.seen != nil {
		p.seen(message)
	}
}

func (p *progress) Action(format string, args ...any)  { p.add("► "+format, args) }
func (p *progress) Waiting(format string, args ...any) { p.add("◎ "+format, args) }
func (p *progress) Success(format string, args ...any) { p.add("✔ "+format, args) }
func (p *progress) Warning(format string, args ...any) { p.add("⚠️ "+format, args) }
func (p *progress) Step(string, bool) func()           { return func() {} }

// changes records the requests that change the cluster, and fails from one of
// them on: before it is sent, or after the server has handled it.
type changes struct {
	next   http.RoundTripper
	mu     sync.Mutex
	seen   []string
	cutAt  int // 0 for never
	before bool
}

var errCut = errors.New("cut off")

func (c *changes) wrap(next http.RoundTripper) http.RoundTripper {
	c.next = next
	return c
}

func (c *changes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews") {
		return c.next.RoundTrip(r)
	}
	c.mu.Lock()
	c.seen = append(c.seen, r.Method+" "+r.URL.RequestURI())
	number := len(c.seen)
	c.mu.Unlock()
	cut := c.cutAt > 0 && number >= c.cutAt
	if cut && (c.before || number > c.cutAt) {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: errCut}
	}
	answer, err := c.next.RoundTrip(r)
	if cut && err == nil {
		return nil, errors.Join(errCut, answer.Body.Close())
	}
	return answer, err
}
