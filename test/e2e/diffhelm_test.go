package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// TestDiffReleases compares diff with the controller for one case of each action.
func TestDiffReleases(t *testing.T) {
	t.Parallel()
	diffReleases(t, false)
}

func TestNightlyDiffReleases(t *testing.T) {
	t.Parallel()
	diffReleases(t, true)
}

// diffReleases changes many HelmReleases at once while helm-controller is scaled to zero, and checks
// that its later actions, as reported by a watch, are equal to the diff of each object.
func diffReleases(t *testing.T, nightly bool) {
	t.Helper()
	f := newWhole(t)
	bootstrap(f)
	cases := releaseCases(f.cluster.Env["FLUX_SANDBOX_REGISTRY"], publishCharts(f))
	cases = slices.DeleteFunc(cases, func(c releaseCase) bool { return c.nightly != nightly })
	installReleases(f, cases)
	f.shell.run("flux", "suspend", "kustomization", "flux-system")
	// The version that the sandbox runs. It updates the existing CRDs of charts, which 1.6.5 does not.
	f.shell.run("kubectl", "--namespace=flux-system", "set", "image", "deployment/helm-controller", "manager=ghcr.io/fluxcd/helm-controller:v1.6.4")
	f.shell.run("kubectl", "--namespace=flux-system", "scale", "deployment", "helm-controller", "--replicas=0")
	f.shell.run("kubectl", "--namespace=flux-system", "wait", "--for=delete", "pod", "--selector=app=helm-controller", waitFlag)
	for _, c := range cases {
		if c.live != nil {
			c.live(f)
		}
	}
	fromFiles := predictReleases(f, cases)
	commitReleases(f, "Change", cases, true)
	f.shell.run("flux", "reconcile", "kustomization", "releases", "--with-source")
	announced := map[string]*diff.Result{}
	for _, c := range cases {
		if c.source == "" && !c.first {
			f.shell.run("flux", "reconcile", "source", "chart", c.name+"-app")
		}
		announced[c.name] = predictRelease(f, c)
	}
	watch := watchChanges(f)
	f.shell.run("kubectl", "--namespace=flux-system", "scale", "deployment", "helm-controller", "--replicas=1")
	for _, c := range cases {
		reconcileRelease(f, c)
	}
	seen := watch.end()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := announced[c.name]
			said := actionsOf(r)
			if d := cmp.Diff(c.want, said); d != "" {
				t.Errorf("diff (-want +got):\n%s", d)
			}
			if r.Step != c.step {
				t.Errorf("diff has step %s, want %s", r.Step, c.step)
			}
			if before := fromFiles[c.name]; before == nil || before.Step != r.Step {
				t.Errorf("the diff of the files was %v", before)
			} else if d := cmp.Diff(said, actionsOf(before)); d != "" {
				t.Errorf("diff of the files (-from the cluster +from the files):\n%s", d)
			}
			maps.DeleteFunc(said, func(_ string, a diff.Action) bool { return a == diff.Skipped || a == diff.Failed })
			if d := cmp.Diff(said, seen.ofRelease(c.name, r)); d != "" {
				t.Errorf("the controller did something else (-diff +done):\n%s", d)
			}
			seen.holds(t, r)
			compareBuild(f.as(t), c)
		})
	}
	for _, c := range cases {
		checkSettledRelease(f, c)
	}
	checkSettledFiles(f, cases)
}

// installReleases installs the initial state of the cases.
func installReleases(f *fixture, cases []releaseCase) {
	f.t.Helper()
	commitReleases(f, "Begin", cases, false)
	reconcile(f)
	f.shell.run("flux", "wait", "kustomization", "releases")
	for _, c := range cases {
		if !c.first {
			f.shell.run("flux", "wait", "helmrelease", "app", "--namespace="+c.name)
		}
	}
}

// predictReleases returns the diff of the files, of the Kustomization that applies the
// HelmReleases, before they are pushed.
func predictReleases(f *fixture, cases []releaseCase) map[string]*diff.Result {
	f.t.Helper()
	work := filepath.Join(f.t.TempDir(), "work")
	if err := os.CopyFS(work, os.DirFS(f.git.dir)); err != nil {
		f.t.Fatal(err)
	}
	for name, content := range releaseFiles(cases, true) {
		file := filepath.Join(work, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		switch {
		case err != nil:
		case content == "":
			err = os.Remove(file)
		default:
			err = os.WriteFile(file, []byte(content), 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	stdout, stderr, err := f.shell.try("flux", "diff", "kustomization", "releases", "--path", filepath.Join(work, "releases"), "--with-helm", "-o", "json")
	var report struct{ Kustomizations []*diff.Result }
	if problem := json.Unmarshal([]byte(stdout), &report); problem != nil {
		f.t.Fatalf("diff of the files: %v, %v\n%s%s", err, problem, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, "open-sesame") {
		f.t.Errorf("diff of the files shows a secret:\n%s%s", stdout, stderr)
	}
	announced := map[string]*diff.Result{}
	for _, r := range report.Kustomizations {
		if r.Owner.Kind == "HelmRelease" {
			announced[r.Owner.Namespace] = r
		}
	}
	return announced
}

// commitReleases pushes the files of all cases, before or after their change.
func commitReleases(f *fixture, message string, cases []releaseCase, after bool) {
	f.t.Helper()
	f.git.commit(message, releaseFiles(cases, after))
}

func releaseFiles(cases []releaseCase, after bool) map[string]string {
	files := map[string]string{}
	if !after {
		files["clusters/test/releases.yaml"] = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: releases, namespace: flux-system}
spec: {interval: 1h, path: ./releases, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`
	}
	for _, c := range cases {
		files[path.Join("releases", c.name+".yaml")] = c.manifests(after)
		chart := c.chart
		if after {
			chart = c.chartAfter
		}
		for name, content := range chart {
			files[path.Join("charts", c.name, name)] = content
		}
	}
	return files
}

// reconcileRelease waits until the controller has handled the change.
func reconcileRelease(f *fixture, c releaseCase) {
	f.t.Helper()
	if !c.fails {
		f.shell.run("flux", "reconcile", "helmrelease", "app", "--namespace="+c.name)
		return
	}
	// A failure before the first new revision is retried indefinitely.
	f.eventually(c.name+" to fail", resource(f.t, "HelmRelease"), kube.Selection{Namespace: c.name, Name: "app"}, func(e kube.Event) bool {
		released, _ := controllers.FindCondition(e.Object, "Released")
		return released.Status == "False" && released.Reason == "UpgradeFailed"
	})
}

// predictRelease returns the diff of a release.
func predictRelease(f *fixture, c releaseCase) *diff.Result {
	f.t.Helper()
	stdout, stderr, err := f.shell.try("flux", "diff", "helmrelease", "app", "--namespace="+c.name, "-o", "json", "--exit-code=false")
	if (err != nil) != c.fails {
		f.t.Fatalf("diff of %s: %v\n%s%s", c.name, err, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, "open-sesame") {
		f.t.Errorf("diff of %s shows a secret:\n%s%s", c.name, stdout, stderr)
	}
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Kustomizations) != 1 {
		f.t.Fatalf("reading the diff of %s: %v\n%s", c.name, err, stdout)
	}
	return report.Kustomizations[0]
}

// ofRelease returns the actions on the objects of a release, and on the objects that diff has
// reported. Hooks are not part of the release.
func (w clusterChanges) ofRelease(namespace string, r *diff.Result) map[string]diff.Action {
	return w.actions(r, func(o controllers.Object) bool {
		return note(o, "labels", "helm.toolkit.fluxcd.io/namespace") == namespace && note(o, "annotations", "helm.sh/hook") == ""
	})
}

// compareBuild checks that build renders the manifests that Helm has stored.
func compareBuild(f *fixture, c releaseCase) {
	t := f.t
	t.Helper()
	if c.fails || c.unlike {
		return
	}
	hr, err := f.cluster.Client.Get(f.t.Context(), resource(t, "HelmRelease"), c.name, "app")
	if err != nil {
		t.Fatal(err)
	}
	history, err := helm.Read(f.t.Context(), f.cluster.Client, text(hr, "status.storageNamespace"), text(hr, "status.history[0].name"))
	if err != nil || history == nil {
		t.Fatalf("reading the release: %v, %v", history, err)
	}
	stored, err := sourcetree.ReadManifests(strings.NewReader(history.Current().Manifest))
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := f.shell.try("flux", "build", "helmrelease", "app", "--namespace="+c.name, "--crds=false", "--local-sources", "GitRepository/flux-system/flux-system="+f.git.dir)
	if err != nil {
		t.Fatalf("build of %s: %v\n%s", c.name, err, stderr)
	}
	built, err := sourcetree.ReadManifests(strings.NewReader(stdout))
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]any{}, map[string]any{}
	for _, o := range stored {
		addNamespace(f, o, text(hr, "status.history[0].namespace"))
		want[named(o.Object)] = o.Object
	}
	for _, o := range built {
		got[named(o.Object)] = o.Object
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("build renders other manifests (-stored +built):\n%s", d)
	}
}

// addNamespace sets the namespace of an object that Helm stores without one and
// creates in the namespace of the release.
func addNamespace(f *fixture, o *unstructured.Unstructured, namespace string) {
	f.t.Helper()
	kinds, err := f.cluster.Client.Discovery().Kinds(f.t.Context(), o.GroupVersionKind().GroupVersion())
	if err != nil {
		f.t.Fatal(err)
	}
	if r, ok := kinds[o.GetKind()]; ok && !r.ClusterScoped && o.GetNamespace() == "" {
		o.SetNamespace(namespace)
	}
}

// checkSettledRelease checks that there is no difference afterwards.
func checkSettledRelease(f *fixture, c releaseCase) {
	f.t.Helper()
	stdout, stderr, err := f.shell.try("flux", "diff", "helmrelease", "app", "--namespace="+c.name, "--progress-bar=false")
	if c.fails {
		if err == nil {
			f.t.Errorf("diff of %s, with which the controller fails, found nothing", c.name)
		}
		return
	}
	if err != nil {
		f.t.Errorf("%s differs after it was applied: %v\n%s%s", c.name, err, stdout, stderr)
	}
}

// checkSettledFiles checks that the diff of the pushed files computes chart versions like
// source-controller, and therefore plans no upgrade.
func checkSettledFiles(f *fixture, cases []releaseCase) {
	f.t.Helper()
	stdout, stderr, _ := f.shell.try("flux", "diff", "kustomization", "releases", "--path", filepath.Join(f.git.dir, "releases"), "--with-helm", "-o", "json")
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		f.t.Fatalf("diff of the pushed files: %v\n%s%s", err, stdout, stderr)
	}
	planned := map[string]*diff.Result{}
	for _, r := range report.Kustomizations {
		planned[r.Owner.Namespace+"/"+r.Owner.Name] = r
	}
	for _, c := range cases {
		if c.template == "" {
			continue
		}
		if r := planned[c.name+"/app"]; r == nil || r.Step != diff.Keep {
			f.t.Errorf("diff of the pushed files plans %+v for %s\n%s", r, c.name, stderr)
		}
	}
}

// publishCharts starts a Helm repository with two versions of a chart, and pushes them
// to a registry.
func publishCharts(f *fixture) string {
	f.t.Helper()
	packed := map[string][]byte{}
	for version, value := range map[string]string{"1.0.0": "old", "1.1.0": "new"} {
		files := map[string]string{
			"app/Chart.yaml":          fmt.Sprintf("apiVersion: v2\nname: app\nversion: %s\n", version),
			"app/templates/app.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, labels: {helm.sh/chart: '{{ .Chart.Name }}-{{ .Chart.Version | replace \"+\" \"_\" }}'}}\ndata: {from: " + value + "}\n",
			"app/templates/same.yaml": configMap("same", "a: b"),
		}
		layer := archive(f.t, files)
		packed[version] = layer
		pushArtifact(f, "charts/app", version, "application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", layer)
	}
	return serveCharts(f.t, packed)
}
