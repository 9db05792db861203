package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// bootstrapArgs returns the arguments of a bootstrap from the repository.
func bootstrapArgs(g *gitClient, extra ...string) []string {
	return append([]string{
		"bootstrap", "git", "--url=" + g.address, "--allow-insecure-http", "--branch=main", "--path=clusters/test",
		"--username=dev", "--password=not-checked", "--token-auth", "--silent",
	}, extra...)
}

func bootstrap(f *fixture, extra ...string) {
	f.t.Helper()
	f.shell.run("flux", bootstrapArgs(f.git, extra...)...)
}

// reconcile makes Flux apply the last commit.
func reconcile(f *fixture) {
	f.t.Helper()
	f.shell.run("flux", "reconcile", "kustomization", "flux-system", "--with-source")
}

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

// TestSmoke runs the main path: bootstrap, an application, a failure and its root cause, uninstall.
func TestSmoke(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	bootstrap(f)
	runApplication(f)
	f.shell.run("flux", "reconcile", "kustomization", "my-app")
	f.shell.run("flux", "why", "kustomization", "my-app")
	f.git.commit("Break my-app", map[string]string{"apps/my-app/kustomization.yaml": "resources: [gone.yaml]\n"})
	if _, stderr, err := f.shell.try("flux", "reconcile", "kustomization", "my-app", "--with-source"); exitCode(err) != 1 || !strings.Contains(stderr, "gone.yaml") {
		t.Errorf("reconciling a commit that does not build ends with %v:\n%s", err, stderr)
	}
	failure{args: []string{"kustomization", "my-app"}, root: "Kustomization/my-app", code: "build", says: []string{"gone.yaml"}}.find(f)
	uninstall(f)
}

// TestBootstrap runs the life cycle of a cluster with Flux: bootstrap, which changes nothing when repeated, an
// application, a new version, drift, removal, a restarted controller, uninstall.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	f := newWhole(t)

	bootstrap(f)
	commits := f.git.subjects()
	want := []string{"Add Flux sync manifests", "Add Flux v" + controllers.DefaultVersion + " component manifests"}
	if fmt.Sprint(commits) != fmt.Sprint(want) {
		t.Fatalf("bootstrap committed %q, want %q", commits, want)
	}
	deployed := generations(t, f.cluster)
	bootstrap(f)
	if again := f.git.subjects(); fmt.Sprint(again) != fmt.Sprint(commits) {
		t.Fatalf("the second bootstrap committed: %q", again)
	}
	if again := generations(t, f.cluster); fmt.Sprint(again) != fmt.Sprint(deployed) {
		t.Errorf("the second bootstrap changed deployments: %v, before %v", again, deployed)
	}

	runApplication(f)
	f.shell.run("flux", "reconcile", "kustomization", "my-app")
	before := replicaSet(f)

	f.git.commit("Upgrade my-app", map[string]string{"apps/my-app/deployment.yaml": fmt.Sprintf(app, "6.9.1")})
	f.shell.run("flux", "reconcile", "kustomization", "my-app", "--with-source")
	if after := replicaSet(f); after == before {
		t.Errorf("a new image created no new ReplicaSet: still %s", after)
	}

	correctDrift(f)
	pruneApplication(f)
	restartController(f)
	uninstall(f)
}

// runApplication adds an application to the repository.
func runApplication(f *fixture) {
	f.t.Helper()
	f.git.commit("Run my-app", map[string]string{
		"apps/my-app/deployment.yaml": fmt.Sprintf(app, "6.9.0"), "clusters/test/my-app.yaml": appKustomization,
	})
	reconcile(f)
}

// generations returns the generations of the Deployments, to detect changes.
func generations(t *testing.T, cluster *testcluster.Cluster) map[string]string {
	t.Helper()
	found := map[string]string{}
	_, err := cluster.Client.List(t.Context(), deployments, kube.Selection{Namespace: "flux-system"}, func(o controllers.Object) error {
		found[controllers.Name(o)] = text(o, "metadata.generation")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// replicaSet checks the tree from the Kustomization to ready pods, and returns the
// name of the ReplicaSet.
func replicaSet(f *fixture) string {
	f.t.Helper()
	lines := strings.Split(strings.TrimSpace(f.shell.run("flux", "tree", "kustomization", "my-app")), "\n")
	var words []string
	for _, line := range lines {
		words = append(words, strings.TrimLeft(line, "│├└─ \u00a0"))
	}
	if len(words) != 5 || words[0] != "Kustomization/flux-system/my-app" || words[1] != "Deployment/default/my-app" ||
		!strings.HasPrefix(words[2], "ReplicaSet/default/my-app-") ||
		!strings.HasPrefix(words[3], strings.Replace(words[2], "ReplicaSet", "Pod", 1)+"-") ||
		!strings.HasPrefix(words[4], strings.Replace(words[2], "ReplicaSet", "Pod", 1)+"-") {
		f.t.Fatalf("unexpected tree:\n%s", strings.Join(lines, "\n"))
	}
	return words[2]
}

// correctDrift changes the cluster directly and checks that Flux reverts it.
func correctDrift(f *fixture) {
	f.t.Helper()
	f.shell.run("kubectl", "scale", "deployment", "my-app", "--namespace=default", "--replicas=7")
	f.shell.run("flux", "reconcile", "kustomization", "my-app")
	o, err := f.cluster.Client.Get(f.t.Context(), deployments, "default", "my-app")
	if err != nil {
		f.t.Fatal(err)
	}
	if replicas := text(o, "spec.replicas"); replicas != "2" {
		f.t.Errorf("drift was not corrected: %s replicas", replicas)
	}
}

// pruneApplication removes the application from Git and checks that Flux prunes it.
func pruneApplication(f *fixture) {
	f.t.Helper()
	f.git.commit("Retire my-app", map[string]string{"clusters/test/my-app.yaml": ""})
	reconcile(f)
	f.shell.run("kubectl", "wait", waitFlag, "--namespace=default", "--for=delete", "deployment/my-app")
}

// restartController deletes the pod of a controller and checks that its replacement
// reconciles.
func restartController(f *fixture) {
	f.t.Helper()
	var old string
	selection := kube.Selection{Namespace: "flux-system", Labels: "app=kustomize-controller"}
	_, err := f.cluster.Client.List(f.t.Context(), pods, selection, func(o controllers.Object) error {
		old = text(o, "metadata.uid")
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.shell.run("kubectl", "delete", "pod", "--namespace=flux-system", "--selector=app=kustomize-controller", "--wait")
	f.eventually("the new pod to be ready", pods, selection, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		return !e.Deleted && ready.Status == "True" && text(e.Object, "metadata.uid") != old
	})
	reconcile(f)
}

// uninstall checks that no Flux object remains.
func uninstall(f *fixture) {
	f.t.Helper()
	f.shell.run("flux", "uninstall", "--silent")
	var left struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
		}
	}
	out := f.shell.run("kubectl", "get", "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces",
		"--selector=app.kubernetes.io/part-of=flux", "--output=json")
	if err := json.Unmarshal([]byte(out), &left); err != nil {
		f.t.Fatal(err)
	}
	if len(left.Items) > 0 {
		f.t.Errorf("uninstall left %v", left.Items)
	}
	_, stderr, err := f.shell.try("flux", "check")
	if err == nil {
		f.t.Errorf("check passes after uninstall:\n%s", stderr)
	}
}
