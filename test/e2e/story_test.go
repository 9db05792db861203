// Package e2e_test runs end-to-end workflows against a real Kubernetes API and the
// real Flux controllers.
package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stepTime is the maximum time of one command; the machine may be busy.
const stepTime = 3 * time.Minute

// story is a cluster, a repository and a user with flux, kubectl and git.
type story struct {
	*testing.T
	cluster *testcluster.Cluster
	env     []string
	// namespace is the namespace of a chapter, or "" in a story without chapters.
	namespace string
	clone     string // work tree of the fleet repository
	// pushing serializes the pushes of chapters that share the work tree.
	pushing *sync.Mutex
	url     string
	stdin   *os.File
}

// newStory starts a cluster with all controllers.
func newStory(t *testing.T) *story {
	t.Helper()
	bin := testcluster.Programs(t)
	s := &story{T: t, cluster: testcluster.Start(t, "all"), pushing: &sync.Mutex{}}
	s.cluster.Sandbox(t, "git", "create", "fleet")
	s.url = s.cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/fleet.git"
	s.clone = filepath.Join(t.TempDir(), "fleet")
	s.env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig, "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=dev", "GIT_AUTHOR_EMAIL=dev@example.com", "GIT_COMMITTER_NAME=dev", "GIT_COMMITTER_EMAIL=dev@example.com",
		"PATH="+strings.Join([]string{bin, testcluster.Bin(), os.Getenv("PATH")}, string(os.PathListSeparator)))
	return s
}

// run executes a command, which must succeed, and returns its standard output.
func (s *story) run(name string, args ...string) string {
	s.Helper()
	stdout, stderr, err := s.try(name, args...)
	if err != nil {
		s.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

func (s *story) try(name string, args ...string) (stdout, stderr string, err error) {
	s.Helper()
	dir := ""
	if name == "git" {
		dir = s.clone
	}
	return s.tryIn(dir, name, args...)
}

// tryIn is try in a directory, "" for the current one.
func (s *story) tryIn(dir, name string, args ...string) (stdout, stderr string, err error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), stepTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, lookPath(s.env, name), args...)
	cmd.Env, cmd.Dir = s.env, dir
	if s.stdin != nil {
		cmd.Stdin = s.stdin
	}
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	return out.String(), log.String(), err
}

func lookPath(env []string, name string) string {
	for _, v := range env {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if file := filepath.Join(dir, name); isFile(file) {
				return file
			}
		}
	}
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// write creates a file in a folder of the test.
func (s *story) write(name, content string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func (s *story) bootstrap(extra ...string) {
	s.Helper()
	s.run("flux", append([]string{
		"bootstrap", "git", "--url=" + s.url, "--allow-insecure-http", "--branch=main", "--path=clusters/test",
		"--username=dev", "--password=not-checked", "--token-auth", "--silent",
	}, extra...)...)
}

// commit writes files ("" removes a file), commits and pushes.
func (s *story) commit(message string, files map[string]string) {
	s.Helper()
	s.pushing.Lock()
	defer s.pushing.Unlock()
	if _, err := os.Stat(s.clone); err != nil {
		if out, err := exec.CommandContext(s.Context(), "git", "clone", "--quiet", s.url, s.clone).CombinedOutput(); err != nil {
			s.Fatalf("cloning: %v\n%s", err, out)
		}
	}
	if s.run("git", "ls-remote", "origin") != "" { // an empty repository has nothing to pull
		s.run("git", "pull", "--quiet", "--rebase")
	}
	for name, content := range files {
		path := filepath.Join(s.clone, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				s.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.run("git", "add", "--all")
	s.run("git", "commit", "--quiet", "--message", message)
	s.run("git", "push", "--quiet")
}

func (s *story) reconcile() {
	s.Helper()
	s.run("flux", "reconcile", "kustomization", "flux-system", "--with-source")
}

// commits returns the subjects of the repository's commits, newest first.
func (s *story) commits() []string {
	s.Helper()
	bare := s.cluster.Sandbox(s.T, "git", "url", "fleet")
	dir := s.TempDir()
	out, err := exec.CommandContext(s.Context(), "git", "clone", "--quiet", strings.TrimSpace(bare), dir).CombinedOutput()
	if err != nil {
		s.Fatalf("cloning: %v\n%s", err, out)
	}
	log, err := exec.CommandContext(s.Context(), "git", "-C", dir, "log", "--format=%s").Output()
	if err != nil {
		s.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(log)), "\n")
}

var deployments = kube.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment"}

var pods = kube.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod"}

// eventually watches the selected objects until done returns true.
func (s *story) eventually(what string, r kube.Resource, selection kube.Selection, done func(kube.Event) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), stepTime)
	defer cancel()
	err := s.cluster.Client.Follow(ctx, r, selection, "", func(e kube.Event) (bool, error) { return done(e), nil })
	if err != nil {
		s.Fatalf("waiting for %s: %v", what, err)
	}
}

// deadline returns a channel that is closed at the end of a step.
func (s *story) deadline() <-chan struct{} {
	ctx, cancel := context.WithTimeout(s.Context(), stepTime)
	s.Cleanup(cancel)
	return ctx.Done()
}

func text(o controllers.Object, path string) string { return controllers.Path{path}.String(o) }

const app = `apiVersion: apps/v1
kind: Deployment
metadata: {name: my-app, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: my-app}}
  template:
    metadata: {labels: {app: my-app}}
    spec:
      containers:
      - {name: app, image: "ghcr.io/stefanprodan/podinfo:%s"}
`

const appKustomization = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: my-app, namespace: flux-system}
spec:
  interval: 10m
  path: ./apps/my-app
  prune: true
  wait: true
  sourceRef: {kind: GitRepository, name: flux-system}
`

// TestStory runs the life cycle of a cluster with Flux: bootstrap, an application, a
// new version, drift, removal, a restarted controller, uninstall.
func TestStory(t *testing.T) {
	t.Parallel()
	s := newStory(t)

	s.bootstrap()
	first := s.commits()
	want := []string{"Add Flux sync manifests", "Add Flux v" + controllers.DefaultVersion + " component manifests"}
	if fmt.Sprint(first) != fmt.Sprint(want) {
		t.Fatalf("bootstrap committed %q, want %q", first, want)
	}
	generations := s.generations()
	s.bootstrap()
	if again := s.commits(); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Fatalf("the second bootstrap committed: %q", again)
	}
	if again := s.generations(); fmt.Sprint(again) != fmt.Sprint(generations) {
		t.Errorf("the second bootstrap changed deployments: %v, before %v", again, generations)
	}

	s.commit("Run my-app", map[string]string{
		"apps/my-app/deployment.yaml": fmt.Sprintf(app, "6.9.0"), "clusters/test/my-app.yaml": appKustomization,
	})
	s.reconcile()
	s.run("flux", "reconcile", "kustomization", "my-app")
	before := s.replicaSet()

	s.commit("Upgrade my-app", map[string]string{"apps/my-app/deployment.yaml": fmt.Sprintf(app, "6.9.1")})
	s.run("flux", "reconcile", "kustomization", "my-app", "--with-source")
	if after := s.replicaSet(); after == before {
		t.Errorf("a new image created no new ReplicaSet: still %s", after)
	}

	s.drift()
	s.prune()
	s.restart()
	s.uninstall()
}

// generations returns the generations of the Deployments, to detect changes.
func (s *story) generations() map[string]string {
	s.Helper()
	found := map[string]string{}
	_, err := s.cluster.Client.List(s.Context(), deployments, kube.Selection{Namespace: "flux-system"}, func(o controllers.Object) error {
		found[controllers.Name(o)] = text(o, "metadata.generation")
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// replicaSet checks the tree from the Kustomization to ready pods, and returns the
// name of the ReplicaSet.
func (s *story) replicaSet() string {
	s.Helper()
	lines := strings.Split(strings.TrimSpace(s.run("flux", "tree", "kustomization", "my-app")), "\n")
	var words []string
	for _, line := range lines {
		words = append(words, strings.TrimLeft(line, "│├└─ \u00a0"))
	}
	if len(words) != 5 || words[0] != "Kustomization/flux-system/my-app" || words[1] != "Deployment/default/my-app" ||
		!strings.HasPrefix(words[2], "ReplicaSet/default/my-app-") ||
		!strings.HasPrefix(words[3], strings.Replace(words[2], "ReplicaSet", "Pod", 1)+"-") ||
		!strings.HasPrefix(words[4], strings.Replace(words[2], "ReplicaSet", "Pod", 1)+"-") {
		s.Fatalf("unexpected tree:\n%s", strings.Join(lines, "\n"))
	}
	return words[2]
}

// drift changes the cluster directly and checks that Flux reverts it.
func (s *story) drift() {
	s.Helper()
	s.run("kubectl", "scale", "deployment", "my-app", "--namespace=default", "--replicas=7")
	s.run("flux", "reconcile", "kustomization", "my-app")
	o, err := s.cluster.Client.Get(s.Context(), deployments, "default", "my-app")
	if err != nil {
		s.Fatal(err)
	}
	if replicas := text(o, "spec.replicas"); replicas != "2" {
		s.Errorf("drift was not corrected: %s replicas", replicas)
	}
}

// prune removes the application from Git and checks that Flux prunes it.
func (s *story) prune() {
	s.Helper()
	s.commit("Retire my-app", map[string]string{"clusters/test/my-app.yaml": ""})
	s.reconcile()
	ctx, cancel := context.WithTimeout(s.Context(), stepTime)
	defer cancel()
	_, err := s.cluster.Client.WaitDeleted(ctx, deployments, kube.Selection{Namespace: "default", Name: "my-app"}, func(controllers.Object) bool { return true })
	if err != nil {
		s.Errorf("waiting for the Deployment to be pruned: %v", err)
	}
}

// restart deletes the pod of a controller and checks that its replacement
// reconciles.
func (s *story) restart() {
	s.Helper()
	var old string
	selection := kube.Selection{Namespace: "flux-system", Labels: "app=kustomize-controller"}
	_, err := s.cluster.Client.List(s.Context(), pods, selection, func(o controllers.Object) error {
		old = text(o, "metadata.uid")
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	s.run("kubectl", "delete", "pod", "--namespace=flux-system", "--selector=app=kustomize-controller", "--wait")
	s.eventually("the new pod to be ready", pods, selection, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		return !e.Deleted && ready.Status == "True" && text(e.Object, "metadata.uid") != old
	})
	s.reconcile()
}

// uninstall checks that no Flux object remains.
func (s *story) uninstall() {
	s.Helper()
	s.run("flux", "uninstall", "--silent")
	var left struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
		}
	}
	out := s.run("kubectl", "get", "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces",
		"--selector=app.kubernetes.io/part-of=flux", "--output=json")
	if err := json.Unmarshal([]byte(out), &left); err != nil {
		s.Fatal(err)
	}
	if len(left.Items) > 0 {
		s.Errorf("uninstall left %v", left.Items)
	}
	_, stderr, err := s.try("flux", "check")
	if err == nil {
		s.Errorf("check passes after uninstall:\n%s", stderr)
	}
}
