package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testgithost"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/tier"
)

// TestKilled kills a bootstrap at each of its changes (nightly) or at every eighth, on the Git host, by Git
// and on the cluster, before and after the server has handled it. A second run must reach the state of an
// uninterrupted one.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t), cluster: sandboxes.Acquire(t, testcluster.Whole)}
	if err := w.cluster.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.playControllers(t)
	whole := w.newVictim(t, "whole")
	if out, err := whole.run(0, false); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, total := whole.state(), len(whole.killer.counted())
	if total < 20 {
		t.Fatalf("only %d changes were counted: %v", total, whole.killer.counted())
	}
	t.Logf("%d changes", total)
	step := 1
	if !tier.Nightly() {
		step = 8
	}
	t.Run("plain Git", w.killedPushing)
	t.Run("at", func(t *testing.T) {
		for at := 1; at <= total; at += step {
			for _, late := range []bool{false, true} {
				name := fmt.Sprintf("kill-%02d-%s", at, map[bool]string{false: "before", true: "after"}[late])
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w.newVictim(t, name).survives(at, late, want)
				})
			}
		}
	})
}

// victim is a namespace, a Git host with an empty organization, and the arguments of
// a bootstrap.
type victim struct {
	t         *testing.T
	w         *world
	namespace string
	host      *testgithost.GitHub
	killer    *killer
	env, args []string
}

func (w *world) newVictim(t *testing.T, namespace string) *victim {
	t.Helper()
	v := &victim{t: t, w: w, namespace: namespace, host: testgithost.StartGitHub(t), killer: &killer{}}
	v.host.Classic("t0ken", "ada", "repo", "admin:org", "admin:public_key")
	v.host.Inject(v.killer.fault())
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, v.host.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	v.env = environment(t, v.killer.kubeconfig(t, w.cluster), "GITHUB_TOKEN=t0ken")
	v.args = []string{
		"bootstrap", "github", "--hostname=" + v.host.Hostname, "--ca-file=" + ca, "--owner=acme", "--repository=fleet", "--team=ops:maintain",
		"--path=clusters/demo", "--namespace=" + namespace, "--ssh-hostname=" + strings.TrimPrefix(w.cluster.Env["FLUX_SANDBOX_GIT_SSH_URL"], "ssh://git@"),
		"--components=source-controller,kustomize-controller", "--network-policy=false", "--ssh-key-algorithm=ed25519",
	}
	return v
}

// run runs bootstrap and kills it at a change, if at is not 0.
func (v *victim) run(at int, late bool) (string, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), testlimit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(v.w.bin, "flux"), v.args...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = v.env, &out, &out
	ended := make(chan struct{})
	v.killer.mu.Lock()
	v.killer.seen, v.killer.at, v.killer.late = nil, at, late
	v.killer.kill = func() {
		_ = cmd.Process.Kill() // fails if it has exited, which the count shows
		<-ended
	}
	v.killer.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	err := cmd.Wait()
	close(ended)
	return out.String(), err
}

func (v *victim) survives(at int, late bool, want string) {
	v.t.Helper()
	out, err := v.run(at, late)
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != -1 {
		v.t.Fatalf("it was not killed: %v, %v\n%s", err, v.killer.counted(), out)
	}
	where := v.killer.counted()[at-1]
	if out, err := v.run(0, false); err != nil {
		v.t.Fatalf("after a kill at %s: %v\n%s", where, err, out)
	}
	if diff := cmp.Diff(want, v.state()); diff != "" {
		v.t.Errorf("after a kill at %s: %s", where, diff)
	}
}

// state returns the result of a bootstrap without the namespace and the generated
// keys.
func (v *victim) state() string {
	v.t.Helper()
	secret := v.secret()
	var text strings.Builder
	r := v.host.Repository("acme/fleet")
	v.host.Edit(func() {
		fmt.Fprintf(&text, "repository %s %s %v\n", r.FullName(), r.Visibility, r.Teams)
		for _, k := range r.Keys {
			fmt.Fprintf(&text, "key %s read-only=%t the cluster's=%t\n", k.Title, k.ReadOnly, strings.TrimSpace(k.Key) == strings.TrimSpace(secret["identity.pub"]))
		}
	})
	log, err := v.host.Git.Log("acme/fleet", "main")
	if err != nil {
		v.t.Fatal(err)
	}
	fmt.Fprintf(&text, "commits %q\n", log)
	text.WriteString(v.files())
	fmt.Fprintf(&text, "known hosts %t\n", secret["known_hosts"] != "")
	for _, o := range v.objects() {
		text.WriteString(o)
	}
	return strings.ReplaceAll(text.String(), v.namespace, "NAMESPACE")
}

func (v *victim) files() string {
	folder := v.t.TempDir()
	if err := v.host.Git.Clone("acme/fleet", "main", folder); err != nil {
		v.t.Fatal(err)
	}
	var text strings.Builder
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir() && d.Name() != ".git":
			return err
		case d.IsDir():
			return fs.SkipDir
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		fmt.Fprintf(&text, "--- %s\n%s", path, content)
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return strings.ReplaceAll(text.String(), v.host.Hostname, "HOST")
}

func resource(apiVersion, kind string) kube.Resource {
	return kube.ResourceFor(schema.FromAPIVersionAndKind(apiVersion, kind))
}

func (v *victim) secret() map[string]string {
	o, err := v.w.cluster.Client.Get(v.t.Context(), resource("v1", "Secret"), v.namespace, "flux-system")
	if err != nil {
		v.t.Fatal(err)
	}
	data, _ := o["data"].(map[string]any)
	plain := map[string]string{}
	for key, value := range data {
		var decoded []byte
		quoted, _ := json.Marshal(value)
		if err := json.Unmarshal(quoted, &decoded); err != nil {
			v.t.Fatal(err)
		}
		plain[key] = string(decoded)
	}
	return plain
}

// objects returns the objects of the bootstrap without fields of the server and the
// controllers.
func (v *victim) objects() []string {
	var all []string
	for _, kind := range [][2]string{
		{"v1", "Service"}, {"v1", "ServiceAccount"}, {"v1", "ResourceQuota"}, {"v1", "Secret"}, {"apps/v1", "Deployment"},
		{"rbac.authorization.k8s.io/v1", "ClusterRole"}, {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
		{"source.toolkit.fluxcd.io/v1", "GitRepository"}, {"kustomize.toolkit.fluxcd.io/v1", "Kustomization"},
	} {
		r := resource(kind[0], kind[1])
		scope := v.namespace
		if r.ClusterScoped {
			scope = ""
		}
		_, err := v.w.cluster.Client.List(v.t.Context(), r, kube.Selection{Namespace: scope}, func(o controllers.Object) error {
			if r.ClusterScoped && !strings.Contains(controllers.Name(o), v.namespace) {
				return nil
			}
			all = append(all, v.describe(kind[1], o))
			return nil
		})
		if err != nil {
			v.t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}

func (v *victim) describe(kind string, o controllers.Object) string {
	return strings.ReplaceAll(describe(v.t, kind, o), v.host.Hostname, "HOST")
}

// describe returns an object without fields of the server and the controllers.
func describe(t *testing.T, kind string, o controllers.Object) string {
	t.Helper()
	labels, _ := controllers.Path{"metadata.labels"}.Lookup(o)
	kept := map[string]any{"labels": labels}
	for _, field := range []string{"spec", "rules", "roleRef", "subjects", "type"} {
		if value, ok := o[field]; ok {
			kept[field] = value
		}
	}
	if spec, ok := o["spec"].(map[string]any); ok {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %s\n", kind, controllers.Name(o), text)
}

// playControllers sets each changed source and Kustomization to Ready, and handles
// reconciliation requests, until the test ends.
func (w *world) playControllers(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	for _, name := range []string{"GitRepository", "Kustomization"} {
		k, _ := controllers.FindKind(name)
		go func() { ended <- w.play(ctx, kube.Of(k)) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("playing a controller: %v", err)
			}
		}
	})
}

func (w *world) play(ctx context.Context, r kube.Resource) error {
	return w.cluster.Client.Follow(ctx, r, kube.Selection{}, "", func(e kube.Event) (bool, error) {
		token := controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt")
		handled := controllers.Path{"status.lastHandledReconcileAt"}.String(e.Object)
		if e.Deleted || controllers.Observed(e.Object) && handled == token {
			return false, nil
		}
		generation, _ := controllers.Path{"metadata.generation"}.Lookup(e.Object)
		status := map[string]any{"observedGeneration": generation, "conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "played", "observedGeneration": generation, "lastTransitionTime": "2026-11-01T10:00:00Z",
		}}}
		if token != "" {
			status["lastHandledReconcileAt"] = token
		}
		return false, w.cluster.Client.PatchStatus(ctx, r, controllers.Namespace(e.Object), controllers.Name(e.Object), status)
	})
}

// killedPushing kills a bootstrap of a plain Git server at its push.
func (w *world) killedPushing(t *testing.T) {
	for _, late := range []bool{false, true} {
		name := map[bool]string{false: "push-before", true: "push-after"}[late]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.cluster.Sandbox(t, "git", "create", name)
			v := &victim{t: t, w: w, namespace: name, killer: &killer{}}
			address := v.killer.proxy(t, w.cluster.Env["FLUX_SANDBOX_GIT_URL"], http.DefaultTransport, func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
			})
			v.env = environment(t, w.cluster.Kubeconfig)
			v.args = []string{
				"bootstrap", "git", "--url=" + address + "/" + name + ".git", "--allow-insecure-http", "--username=dev", "--password=any", "--token-auth", "--silent",
				"--path=clusters/demo", "--namespace=" + name, "--components=source-controller,kustomize-controller",
			}
			if out, err := v.run(1, late); err == nil || len(v.killer.counted()) != 1 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			out, err := v.run(0, false)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if pushes := len(v.killer.counted()); pushes != map[bool]int{false: 1, true: 0}[late] {
				t.Errorf("the second run pushed %d times\n%s", pushes, out)
			}
			log, err := exec.Command("git", "--git-dir="+filepath.Join(w.cluster.Dir, "git", name+".git"), "log", "--format=%s", "main").Output()
			if want := "Add Flux sync manifests\nAdd Flux v" + controllers.DefaultVersion + " component manifests\n"; err != nil || string(log) != want {
				t.Errorf("the history is %q, %v", log, err)
			}
		})
	}
}
