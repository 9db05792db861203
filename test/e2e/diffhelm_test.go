package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/release"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// TestDiffPredictsHelm changes many HelmReleases at once while helm-controller is
// scaled to zero, and checks that its later actions, as a watch reports them, equal
// the diff for each object.
func TestDiffPredictsHelm(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.bootstrap()
	charts := s.chartServer()
	cases := releaseCases(s.cluster.Env["FLUX_SANDBOX_REGISTRY"], charts)
	s.beginReleases(cases)
	s.run("flux", "suspend", "kustomization", "flux-system")
	// The version that the sandbox runs. It updates the existing CRDs of charts, which 1.6.5 does not.
	s.run("kubectl", "--namespace=flux-system", "set", "image", "deployment/helm-controller", "manager=ghcr.io/fluxcd/helm-controller:v1.6.4")
	s.run("kubectl", "--namespace=flux-system", "scale", "deployment", "helm-controller", "--replicas=0")
	s.run("kubectl", "--namespace=flux-system", "wait", "--for=delete", "pod", "--selector=app=helm-controller", "--timeout=2m")
	for _, c := range cases {
		if c.live != nil {
			c.live(s)
		}
	}
	fromFiles := s.announceFiles(cases)
	s.commitReleases("Change", cases, true)
	s.run("flux", "reconcile", "kustomization", "releases", "--with-source")
	announced := map[string]*diff.Result{}
	for _, c := range cases {
		if c.source == "" && !c.first {
			s.run("flux", "reconcile", "source", "chart", c.name+"-app")
		}
		announced[c.name] = s.announceRelease(c)
	}
	watch := s.witness()
	s.run("kubectl", "--namespace=flux-system", "scale", "deployment", "helm-controller", "--replicas=1")
	for _, c := range cases {
		s.reconcileRelease(c)
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
			s.rebuilt(t, c)
		})
	}
	for _, c := range cases {
		s.settledRelease(c)
	}
	s.settledFiles(cases)
}

// beginReleases installs the initial state of the cases.
func (s *story) beginReleases(cases []releaseCase) {
	s.Helper()
	s.commitReleases("Begin", cases, false)
	s.reconcile()
	s.run("flux", "wait", "kustomization", "releases", "--timeout=100s")
	for _, c := range cases {
		if !c.first {
			s.run("flux", "wait", "helmrelease", "app", "--namespace="+c.name, "--timeout=90s")
		}
	}
}

// announceFiles returns the diff of the files, of the Kustomization that applies the
// HelmReleases, before they are pushed.
func (s *story) announceFiles(cases []releaseCase) map[string]*diff.Result {
	s.Helper()
	work := filepath.Join(s.TempDir(), "work")
	if err := os.CopyFS(work, os.DirFS(s.clone)); err != nil {
		s.Fatal(err)
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
			s.Fatal(err)
		}
	}
	stdout, stderr, err := s.try("flux", "diff", "kustomization", "releases", "--path", filepath.Join(work, "releases"), "--with-helm", "-o", "json")
	var report struct{ Kustomizations []*diff.Result }
	if problem := json.Unmarshal([]byte(stdout), &report); problem != nil {
		s.Fatalf("diff of the files: %v, %v\n%s%s", err, problem, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, "open-sesame") {
		s.Errorf("diff of the files shows a secret:\n%s%s", stdout, stderr)
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
func (s *story) commitReleases(message string, cases []releaseCase, after bool) {
	s.Helper()
	s.commit(message, releaseFiles(cases, after))
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
func (s *story) reconcileRelease(c releaseCase) {
	s.Helper()
	if !c.fails {
		s.run("flux", "reconcile", "helmrelease", "app", "--namespace="+c.name)
		return
	}
	// A failure before there is a new revision is retried without end.
	s.eventually(c.name+" to fail", kube.Of(mustKind(s.T, "HelmRelease")), kube.Selection{Namespace: c.name, Name: "app"}, func(e kube.Event) bool {
		released, _ := controllers.FindCondition(e.Object, "Released")
		return released.Status == "False" && released.Reason == "UpgradeFailed"
	})
}

// announceRelease returns the diff of a release.
func (s *story) announceRelease(c releaseCase) *diff.Result {
	s.Helper()
	stdout, stderr, err := s.try("flux", "diff", "helmrelease", "app", "--namespace="+c.name, "-o", "json", "--exit-code=false")
	if (err != nil) != c.fails {
		s.Fatalf("diff of %s: %v\n%s%s", c.name, err, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, "open-sesame") {
		s.Errorf("diff of %s shows a secret:\n%s%s", c.name, stdout, stderr)
	}
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Kustomizations) != 1 {
		s.Fatalf("reading the diff of %s: %v\n%s", c.name, err, stdout)
	}
	return report.Kustomizations[0]
}

// ofRelease returns the actions on the objects of a release, and on those that diff
// has reported. Hooks are not part of the release.
func (w witnessed) ofRelease(namespace string, r *diff.Result) map[string]diff.Action {
	return w.actions(r, func(o controllers.Object) bool {
		return note(o, "labels", "helm.toolkit.fluxcd.io/namespace") == namespace && note(o, "annotations", "helm.sh/hook") == ""
	})
}

// rebuilt checks that build renders the manifests that Helm has stored.
func (s *story) rebuilt(t *testing.T, c releaseCase) {
	t.Helper()
	if c.fails || c.unlike {
		return
	}
	hr, err := s.cluster.Client.Get(s.Context(), kube.Of(mustKind(t, "HelmRelease")), c.name, "app")
	if err != nil {
		t.Fatal(err)
	}
	history, err := release.Read(s.Context(), s.cluster.Client, text(hr, "status.storageNamespace"), text(hr, "status.history[0].name"))
	if err != nil || history == nil {
		t.Fatalf("reading the release: %v, %v", history, err)
	}
	stored, err := build.ReadManifests(strings.NewReader(history.Current().Manifest))
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := s.try("flux", "build", "helmrelease", "app", "--namespace="+c.name, "--crds=false", "--local-sources", "GitRepository/flux-system/flux-system="+s.clone)
	if err != nil {
		t.Fatalf("build of %s: %v\n%s", c.name, err, stderr)
	}
	built, err := build.ReadManifests(strings.NewReader(stdout))
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]any{}, map[string]any{}
	for _, o := range stored {
		s.complete(o, text(hr, "status.history[0].namespace"))
		want[named(o.Object)] = o.Object
	}
	for _, o := range built {
		got[named(o.Object)] = o.Object
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("build renders other manifests (-stored +built):\n%s", d)
	}
}

// complete sets the namespace of an object that Helm stores without one and
// creates in the namespace of the release.
func (s *story) complete(o *unstructured.Unstructured, namespace string) {
	s.Helper()
	kinds, err := s.cluster.Client.Discovery().Kinds(s.Context(), o.GroupVersionKind().GroupVersion())
	if err != nil {
		s.Fatal(err)
	}
	if r, ok := kinds[o.GetKind()]; ok && !r.ClusterScoped && o.GetNamespace() == "" {
		o.SetNamespace(namespace)
	}
}

func mustKind(t *testing.T, word string) controllers.Kind {
	t.Helper()
	k, ok := controllers.FindKind(word)
	if !ok {
		t.Fatalf("no kind %s", word)
	}
	return k
}

// settledRelease checks that there is no difference afterwards.
func (s *story) settledRelease(c releaseCase) {
	s.Helper()
	stdout, stderr, err := s.try("flux", "diff", "helmrelease", "app", "--namespace="+c.name, "--progress-bar=false")
	if c.fails {
		if err == nil {
			s.Errorf("diff of %s, with which the controller fails, found nothing", c.name)
		}
		return
	}
	if err != nil {
		s.Errorf("%s differs after it was applied: %v\n%s%s", c.name, err, stdout, stderr)
	}
}

// settledFiles checks that the diff of the pushed files computes the versions of
// charts as source-controller does: it plans no upgrade.
func (s *story) settledFiles(cases []releaseCase) {
	s.Helper()
	stdout, stderr, _ := s.try("flux", "diff", "kustomization", "releases", "--path", filepath.Join(s.clone, "releases"), "--with-helm", "-o", "json")
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		s.Fatalf("diff of the pushed files: %v\n%s%s", err, stdout, stderr)
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
			s.Errorf("diff of the pushed files plans %+v for %s\n%s", r, c.name, stderr)
		}
	}
}

// chartServer starts a Helm repository with two versions of a chart, and pushes them
// to a registry.
func (s *story) chartServer() string {
	s.Helper()
	packed := map[string][]byte{}
	for version, value := range map[string]string{"1.0.0": "old", "1.1.0": "new"} {
		files := map[string]string{
			"app/Chart.yaml":          fmt.Sprintf("apiVersion: v2\nname: app\nversion: %s\n", version),
			"app/templates/app.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, labels: {helm.sh/chart: '{{ .Chart.Name }}-{{ .Chart.Version | replace \"+\" \"_\" }}'}}\ndata: {from: " + value + "}\n",
			"app/templates/same.yaml": configMap("same", "a: b"),
		}
		layer := s.archive(files)
		packed[version] = layer
		s.push("charts/app", version, "application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", layer)
	}
	return s.chartRepository(packed)
}
