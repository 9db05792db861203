package e2e_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/registry/registrytest"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/test/support/testcloud"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// repositoryReport is a report of flux test in JSON.
type repositoryReport struct {
	Result  string
	Objects []struct {
		Object struct{ Kind, Namespace, Name string }
		Status string
		Order  int
	}
	Causes []struct {
		Object        struct{ Kind, Name string }
		Message, File string
		Remedies      []string
	}
	Missing, Generated []struct {
		Object struct{ Kind, Name string }
		Keys   []string
		Remedy string
	}
	Conflicts []struct {
		Object  struct{ Kind, Name string }
		Owners  []struct{ Kind, Name string }
		Fields  []string
		Differs bool
	}
	Orphans []struct {
		Object, Owner struct{ Kind, Name string }
		OwnerDeleted  bool
	}
	Tests     []struct{ Test, Step, File, Outcome, Expected, Actual string }
	Unknown   []string
	Unmatched []struct{ URL string }
	Timeline  *struct {
		NotReady []any
		Entries  []struct {
			Object          struct{ Kind, Name string }
			Action, Message string
		}
	}
}

// inGit are the edits of the layout with Helm that take its second chart from the repository.
func inGit() []string {
	return []string{"chart: shop\n      version: \">=1.0.0\"\n      sourceRef: {kind: HelmRepository, name: shop}", "chart: ./charts/shop\n      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}"}
}

// comparePrediction checks that flux diff --timeline predicts what flux test --base has observed.
func comparePrediction(sh *shell, dir string, r repositoryReport, code int) {
	sh.t.Helper()
	stdout, stderr, err := sh.in(dir).try("flux", "diff", "--base=base", "--path=clusters/production", "--timeline", "-o", "json",
		"--local-sources=OCIRepository/certificates/certificates=charts/certificates")
	got := 0
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		got = exited.ExitCode()
	}
	var predicted struct {
		Timelines []struct{ Entries []timeline.Entry }
	}
	if err := json.Unmarshal([]byte(stdout), &predicted); err != nil || got != code || len(predicted.Timelines) != 1 {
		sh.t.Fatalf("exit code %d, want %d: %v\n%s%s", got, code, err, stdout, stderr)
	}
	var want, have []string
	for _, e := range r.Timeline.Entries {
		want = append(want, e.Action+" "+e.Object.Kind+"/"+e.Object.Name)
	}
	for _, e := range predicted.Timelines[0].Entries {
		if e.Uncertain {
			sh.t.Errorf("uncertain: %s", e)
		}
		have = append(have, e.Action+" "+e.Object.Kind+"/"+e.Object.Name)
	}
	sh.t.Logf("observed: %q\npredicted: %q", want, have)
	slices.Sort(want)
	slices.Sort(have)
	if d := cmp.Diff(slices.Compact(want), have); d != "" { // the controllers repeat what fails
		sh.t.Errorf("observed (-) and predicted (+):\n%s\n%s", d, stderr)
	}
}

// order returns the place of an object among those that became ready, 0 if it did not.
func (r repositoryReport) order(kind, name string) int {
	for _, o := range r.Objects {
		if o.Object.Kind == kind && o.Object.Name == name {
			return o.Order
		}
	}
	return 0
}

// happened reports whether the timeline has an action on an object.
func (r repositoryReport) happened(action, kind, name, text string) bool {
	for _, e := range r.Timeline.Entries {
		if e.Action == action && e.Object.Kind == kind && e.Object.Name == name && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// writeLayout writes the repository of an archive with the files of bootstrap, commits it as the branch base,
// and changes files. The edits are pairs of texts, of which the second replaces the first in the archive.
func writeLayout(sh *shell, name string, changes map[string]string, edits ...string) string {
	sh.t.Helper()
	edit := strings.NewReplacer(edits...)
	archive, err := txtar.ParseFile(filepath.Join("testdata", "repositories", name+".txtar"))
	if err != nil {
		sh.t.Fatal(err)
	}
	dir := sh.t.TempDir()
	writeFile(sh.t, dir, "clusters/production/flux-system/gotk-sync.yaml", strings.ReplaceAll(fleet["clusters/demo/flux-system/gotk-sync.yaml"], "clusters/demo", "clusters/production"))
	writeFile(sh.t, dir, "clusters/production/flux-system/kustomization.yaml", fleet["clusters/demo/flux-system/kustomization.yaml"])
	writeFile(sh.t, dir, "clusters/production/flux-system/gotk-components.yaml", sh.run("flux", "install", "--version=2.9", "--export"))
	for _, f := range archive.Files {
		writeFile(sh.t, dir, f.Name, edit.Replace(string(f.Data)))
	}
	if _, stderr, err := sh.in(dir).try("git", "init", "--quiet"); err != nil {
		sh.t.Fatal(stderr)
	}
	commitAs(sh, dir, "base")
	for path, content := range changes {
		writeFile(sh.t, dir, path, content)
	}
	return dir
}

// commitAs commits all files as a branch.
func commitAs(sh *shell, dir, branch string) {
	sh.t.Helper()
	for _, args := range [][]string{
		{"add", "--all"}, {"-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "--quiet", "-m", "Deploy"}, {"branch", "--force", branch},
	} {
		if _, stderr, err := sh.in(dir).try("git", args...); err != nil {
			sh.t.Fatal(stderr)
		}
	}
}

// runTest runs flux test and checks the exit code.
func runTest(sh *shell, dir string, code int, args ...string) (r repositoryReport, stdout string) {
	sh.t.Helper()
	stdout, stderr, err := sh.in(dir).try("flux", append([]string{"test", "-o", "json"}, args...)...)
	got := 0
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		got = exited.ExitCode()
	}
	if got != code || json.Unmarshal([]byte(stdout), &r) != nil {
		sh.t.Fatalf("exit code %d, want %d\n%s%s", got, code, stdout, stderr)
	}
	return r, stdout
}

// charts are the mappings of the layout with Helm.
var charts = []string{"--map=oci://registry.example.com/charts=charts", "--map=https://charts.example.com/shop=charts/shop"}

func TestRepositories(t *testing.T) {
	t.Parallel()
	testRepositories(t, map[string]func(*shell){"helm": testHelm, "upgrade": testUpgrade})
}

func TestNightlyRepositories(t *testing.T) {
	t.Parallel()
	testRepositories(t, map[string]func(*shell){
		"monitoring": testMonitoring, "tenancy": testTenancy, "secrets": testSecrets, "conflicts": testConflicts,
		"immutable": testImmutable, "crd": testCRD, "interrupted": testInterrupted, "decryption": testDecryption,
	})
}

// testRepositories runs subtests one after the other, and checks that no sandbox is left after each.
func testRepositories(t *testing.T, tests map[string]func(*shell)) {
	t.Helper()
	tmp := testtemp.Short(t)
	sh := newUser(t).with("TMPDIR=" + tmp)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test(sh.as(t))
			checkRemoved(t, tmp)
		})
	}
}

// checkReady checks that everything is ready, in the order of the dependencies.
func checkReady(t *testing.T, r repositoryReport, order ...[2]string) {
	t.Helper()
	if r.Result != "ready" || len(r.Causes)+len(r.Missing)+len(r.Conflicts)+len(r.Unknown) > 0 {
		t.Errorf("got %+v", r)
	}
	last := 0
	for _, o := range order {
		at := r.order(o[0], o[1])
		if at <= last {
			t.Errorf("%s %s became ready as number %d, after number %d: %+v", o[0], o[1], at, last, r.Objects)
		}
		last = at
	}
}

// testHelm fetches the sources, and tests without their servers.
func testHelm(sh *shell) {
	dir := writeLayout(sh, "helm", nil)
	charts, closed := serveSources(sh.t, dir)
	writeDependent(sh.t, dir, "front", "flux-system", charts)
	closedGit := serveTeam(sh, dir, func(team string) { writeDependent(sh.t, team, "back", "team", charts) })
	closedBucket := serveBucket(sh.t, dir)
	stdout, stderr, err := sh.in(dir).try("flux", "test", "vendor", "-o", "json")
	if err != nil || strings.Count(stdout, `"action": "fetched"`) != 5 || !strings.Contains(stdout, `"kind": "GitRepository"`) {
		sh.t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	closed()
	closedGit()
	closedBucket()
	// source-controller derives the revision of a Bucket from the ETags.
	revision := regexp.MustCompile(`"revision": "(sha256:[0-9a-f]{64})"`).FindStringSubmatch(stdout)
	if revision == nil {
		sh.t.Fatalf("no revision of the Bucket in %s", stdout)
	}
	writeFile(sh.t, dir, "tests/bucket.fluxtest.yaml", `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: bucket}
spec:
  steps:
    - expect:
        - value:
            object: {kind: Bucket, namespace: flux-system, name: assets}
            expression: object.status.artifact.revision
            equals: `+revision[1]+`
`)
	r, _ := runTest(sh, dir, 0, "--vendor", ".fluxtest")
	if len(r.Tests) != 1 || r.Tests[0].Outcome != "passed" {
		sh.t.Errorf("tests %+v", r.Tests)
	}
	checkReady(sh.t, r, [2]string{"HelmRelease", "front"})
	checkReady(sh.t, r, [2]string{"Bucket", "assets"}, [2]string{"Kustomization", "assets"})
	checkReady(sh.t, r, [2]string{"GitRepository", "team"}, [2]string{"HelmRelease", "back"})
	checkReady(sh.t, r, [2]string{"GitRepository", "team"}, [2]string{"Kustomization", "team"})
	checkReady(sh.t, r, [2]string{"OCIRepository", "certificates"}, [2]string{"HelmRelease", "certificates"}, [2]string{"Kustomization", "infra-controllers"},
		[2]string{"Kustomization", "infra-configs"}, [2]string{"HelmRepository", "shop"}, [2]string{"HelmRelease", "shop"}, [2]string{"Kustomization", "apps"})
}

// writeDependent writes a chart that depends on the chart shop, and a release of it in the folders that
// the cluster and the other repository deploy.
func writeDependent(t *testing.T, dir, name, source, charts string) {
	t.Helper()
	writeFile(t, dir, "charts/"+name+"/Chart.yaml", "apiVersion: v2\nname: "+name+"\nversion: 0.1.0\ndependencies: [{name: shop, version: 1.x, repository: \""+charts+"\"}]\n")
	release := `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: flux-system}
spec:
  interval: 1h
  targetNamespace: ` + name + `
  install: {createNamespace: true}
  chart: {spec: {chart: ./charts/` + name + `, sourceRef: {kind: GitRepository, name: ` + source + `}}}
  values: {shop: {replicas: 1}}
`
	for _, folder := range []string{"clusters/production", "deploy"} {
		if _, err := os.Stat(filepath.Join(dir, folder)); err == nil {
			writeFile(t, dir, folder+"/"+name+".yaml", release)
		}
	}
}

// serveBucket adds a Bucket, which it serves on loopback.
func serveBucket(t *testing.T, dir string) (closed func()) {
	t.Helper()
	bucket := testcloud.StartBucket("assets")
	bucket.Put("apps/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: assets, namespace: default}\n")
	bucket.Put("apps/a b+c%.txt", "text")
	bucket.Put("other/invalid.yaml", "kind: [")
	writeFile(t, dir, "clusters/production/assets.yaml", `apiVersion: v1
kind: Secret
metadata: {name: assets, namespace: flux-system}
stringData: {accesskey: `+bucket.AccessKey+`, secretkey: `+bucket.SecretKey+`}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: assets, namespace: flux-system}
spec: {interval: 1h, endpoint: "`+bucket.Endpoint()+`", bucketName: assets, prefix: apps/, insecure: true, secretRef: {name: assets}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: assets, namespace: flux-system}
spec: {interval: 1h, path: ./, prune: true, sourceRef: {kind: Bucket, name: assets}}
`)
	return bucket.Close
}

// serveSources serves the charts of the layout with Helm on loopback, sets the URLs of its sources, and
// returns that of the Helm repository.
func serveSources(t *testing.T, dir string) (charts string, closed func()) {
	t.Helper()
	oci := registrytest.Start()
	address := "oci://" + oci.Host() + "/charts/certificates"
	_, err := registry.PushChart(t.Context(), address+":1.4.0", packChart(t, filepath.Join(dir, "charts/certificates")), time.Unix(0, 0), registry.Access{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	shop := packChart(t, filepath.Join(dir, "charts/shop"))
	helm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = fmt.Fprintf(w, "apiVersion: v1\nentries:\n  shop: [{name: shop, version: 1.2.0, urls: [shop.tgz], digest: %x}]\n", sha256.Sum256(shop))
			return
		}
		_, _ = w.Write(shop)
	}))
	for file, change := range map[string][2]string{
		"infrastructure/controllers/certificates.yaml": {"oci://registry.example.com/charts/certificates", address + "\n  insecure: true"},
		"apps/base/shop.yaml":                          {"https://charts.example.com/shop", `"` + helm.URL + `"`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), change[0]) {
			t.Fatalf("%s: %v", file, err)
		}
		writeFile(t, dir, file, strings.ReplaceAll(string(text), change[0], change[1]))
	}
	return helm.URL, func() { oci.Close(); helm.Close() }
}

// packChart returns the chart in a folder as a packed chart.
func packChart(t *testing.T, folder string) []byte {
	t.Helper()
	files, err := testrun.ReadFiles(t.Context(), os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	inside := map[string][]byte{}
	for name, content := range files {
		inside[filepath.Base(folder)+"/"+name] = content
	}
	packed, err := testrun.PackFiles(inside)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// packedCharts writes the charts of the layout with Helm as an OCI layout and as a packed chart, and
// returns the mappings to them.
func packedCharts(t *testing.T, dir string) []string {
	t.Helper()
	layer := static.NewLayer(packChart(t, filepath.Join(dir, "charts/certificates")), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		t.Fatal(err)
	}
	packed := t.TempDir()
	path, err := layout.Write(filepath.Join(packed, "layout"), empty.Index)
	if err == nil {
		err = path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "1.4.0"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, packed, "shop-1.2.0.tgz", string(packChart(t, filepath.Join(dir, "charts/shop"))))
	return []string{"--map=oci://registry.example.com/charts/certificates=" + filepath.Join(packed, "layout"), "--map=https://charts.example.com/shop=" + filepath.Join(packed, "shop-1.2.0.tgz")}
}

func testMonitoring(sh *shell) {
	r, _ := runTest(sh, writeLayout(sh, "monitoring", nil), 0, charts[0], "--map=https://charts.example.com/shop=charts/logs", "--path=clusters/production", "--revision=base")
	if len(r.Unmatched) != 1 || r.Unmatched[0].URL != "https://charts.example.com/shop" {
		sh.t.Errorf("unmatched %+v", r.Unmatched)
	}
	checkReady(sh.t, r, [2]string{"HelmRelease", "metrics"}, [2]string{"HelmRelease", "logs"}, [2]string{"Kustomization", "monitoring-controllers"}, [2]string{"Kustomization", "monitoring-configs"})
}

const tenant = "--map=ssh://git@git.example.com/dev-team/apps.git=tenant"

func testTenancy(sh *shell) {
	r, text := runTest(sh, writeLayout(sh, "tenancy", map[string]string{"clusters/production/assets.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: assets, namespace: flux-system}
spec: {interval: 1h, endpoint: s3.example.com, bucketName: assets, provider: aws}
`}), 0, tenant, "--map=https://s3.example.com/assets=tenant", "--fake-secrets")
	checkReady(sh.t, r, [2]string{"Bucket", "assets"})
	checkReady(sh.t, r, [2]string{"Kustomization", "tenants"}, [2]string{"GitRepository", "dev-team"}, [2]string{"Kustomization", "dev-team"})
	if len(r.Unmatched) > 0 {
		sh.t.Errorf("unmatched %+v", r.Unmatched)
	}
	if len(r.Generated) != 1 || r.Generated[0].Object.Name != "cluster-vars" || !slices.Equal(r.Generated[0].Keys, []string{"domain"}) {
		sh.t.Errorf("generated %+v, want the variable without a value or default", r.Generated)
	}
	if strings.Contains(text, "fake-") {
		sh.t.Errorf("generated values are in the report:\n%s", text)
	}
}

// testSecrets is the near miss: without generated values, what is missing is named.
func testSecrets(sh *shell) {
	r, _ := runTest(sh, writeLayout(sh, "tenancy", nil), 1, tenant)
	if len(r.Missing) != 2 || len(r.Causes) != 1 || r.Causes[0].Object.Name != "tenants" || len(r.Unmatched) > 0 {
		sh.t.Fatalf("got %+v", r)
	}
	for i, want := range [][2]string{{"cluster-vars", "create it with generated values: --fake-secrets"}, {"sops-age", "--age-key-file"}} {
		if m := r.Missing[i]; m.Object.Name != want[0] || !strings.Contains(m.Remedy, want[1]) {
			sh.t.Errorf("missing %+v, want %v", m, want)
		}
	}
}

// testImmutable changes the selector of a Deployment, which only fails where the base is deployed.
func testImmutable(sh *shell) {
	dir := writeLayout(sh, "helm", map[string]string{"apps/base/worker.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec:
  selector: {matchLabels: {app: jobs}}
  template:
    metadata: {labels: {app: jobs}}
    spec:
      containers: [{name: worker, image: "registry.example.com/worker:1.0.0"}]
`}, inGit()...)
	r, _ := runTest(sh, dir, 1, append(charts, "--base=base")...)
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "apps" || !strings.Contains(r.Causes[0].Message, "immutable") || !strings.Contains(r.Causes[0].Message, "worker") {
		sh.t.Errorf("causes %+v", r.Causes)
	}
	if len(r.Timeline.NotReady) > 0 || !r.happened("failed", "Kustomization", "apps", "immutable") || r.happened("restarted", "Deployment", "worker", "") {
		sh.t.Errorf("timeline %+v", r.Timeline)
	}
	comparePrediction(sh, dir, r, 1)
}

// testCRD moves a custom resource before the release that creates its definition.
func testCRD(sh *shell) {
	dir := writeLayout(sh, "helm", map[string]string{
		"infrastructure/controllers/kustomization.yaml":    "resources: [certificates.yaml, ../configs/issuer]\n",
		"infrastructure/configs/issuer/issuer.yaml":        "apiVersion: certificates.example.com/v1\nkind: Issuer\nmetadata: {name: internal}\nspec: {server: https://ca.example.com}\n",
		"infrastructure/configs/issuer/kustomization.yaml": "resources: [issuer.yaml]\n",
		"infrastructure/configs/kustomization.yaml":        "resources: [settings.yaml]\n",
	}, inGit()...)
	r, _ := runTest(sh, dir, 1, charts...)
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "infra-controllers" || !strings.Contains(r.Causes[0].Message, "Issuer") {
		sh.t.Errorf("causes %+v", r.Causes)
	}
	// A cluster that has the definition from the base gets the custom resource from its new owner.
	upgraded, _ := runTest(sh, dir, 0, append(charts, "--base=base")...)
	comparePrediction(sh, dir, upgraded, 1)
}

// testInterrupted sends SIGINT while the controllers reconcile. The caller checks that the sandbox is
// removed.
func testInterrupted(sh *shell) {
	cmd := exec.CommandContext(sh.t.Context(), lookPath(sh.env, "flux"), append([]string{"test"}, charts...)...)
	cmd.Env, cmd.Dir = sh.env, writeLayout(sh, "helm", nil)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		sh.t.Fatal(err)
	}
	lines, started := []string{}, false
	for r := bufio.NewScanner(stderr); r.Scan(); lines = append(lines, r.Text()) {
		if strings.Contains(r.Text(), "reconciling") && !started {
			started = true
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				sh.t.Error(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !started || !errors.As(err, &exit) || exit.ExitCode() != 130 {
		sh.t.Errorf("interrupted while reconciling (%t), flux test ends with %v:\n%s", started, err, strings.Join(lines, "\n"))
	}
}
