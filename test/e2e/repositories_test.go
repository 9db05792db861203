package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// repositoryReport is a report of flux test in JSON.
type repositoryReport struct {
	Result  string
	Objects []struct {
		Object          struct{ Kind, Namespace, Name string }
		Status, Message string
		Order           int
	}
	NotTested []struct {
		Object   struct{ Kind, Name string }
		Intended bool
	}
	Causes []struct {
		Object        struct{ Kind, Name string }
		Message, File string
		Remedies      []string
		Blocks        []struct{ Kind, Name string }
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

// inGit lists the edits of the layout with Helm that take its second chart from the repository.
func inGit() []string {
	return []string{"chart: shop\n      version: \">=1.0.0\"\n      sourceRef: {kind: HelmRepository, name: shop}", "chart: ./charts/shop\n      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}"}
}

// comparePrediction checks that flux diff --timeline predicts the changes that flux test --base has observed.
func comparePrediction(sh *shell, dir string, r repositoryReport, code int) {
	sh.t.Helper()
	stdout, stderr, err := sh.in(dir).try("flux", "diff", "--base=base", "--path=clusters/production", "--timeline", "-o", "json",
		"--local-sources=OCIRepository/certificates/certificates=charts/certificates")
	got := exitCode(err)
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
	if d := cmp.Diff(slices.Compact(want), have); d != "" { // the controllers retry failures
		sh.t.Errorf("observed (-) and predicted (+):\n%s\n%s", d, stderr)
	}
}

// order returns the position of an object in the order of readiness, or 0 if it did not become ready.
func (r repositoryReport) order(kind, name string) int {
	for _, o := range r.Objects {
		if o.Object.Kind == kind && o.Object.Name == name {
			return o.Order
		}
	}
	return 0
}

// happened reports whether the timeline contains an action on an object.
func (r repositoryReport) happened(action, kind, name, text string) bool {
	for _, e := range r.Timeline.Entries {
		if e.Action == action && e.Object.Kind == kind && e.Object.Name == name && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// writeLayout writes the repository in an archive with the files of bootstrap, commits it as the branch base,
// and changes files. The edits are pairs of a text in the archive and its replacement.
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
	got := exitCode(err)
	if got != code || json.Unmarshal([]byte(stdout), &r) != nil {
		sh.t.Fatalf("exit code %d, want %d\n%s%s", got, code, stdout, stderr)
	}
	return r, stdout
}

// charts lists the mappings of the layout with Helm.
var charts = []string{"--map=oci://registry.example.com/charts=charts", "--map=https://charts.example.com/shop=charts/shop"}

func TestRepositories(t *testing.T) {
	t.Parallel()
	testRepositories(t, map[string]func(*shell){"helm": testHelm, "upgrade": testUpgrade, "operator": testOperator, "suspended": testSuspended})
}

func TestNightlyRepositories(t *testing.T) {
	t.Parallel()
	testRepositories(t, map[string]func(*shell){
		"monitoring": testMonitoring, "tenancy": testTenancy, "secrets": testSecrets, "conflicts": testConflicts,
		"immutable": testImmutable, "crd": testCRD, "interrupted": testInterrupted, "decryption": testDecryption,
		"timeout": testTimeout, "instance": testInstance, "pgp": testPGP, "suspendedmanifest": testSuspendedManifest,
	})
}

// testRepositories runs subtests one after the other, and checks that each one leaves no sandbox.
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

// checkReady checks that all resources are ready, in the order of the dependencies.
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
