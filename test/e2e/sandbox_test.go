package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// TestSandboxVersion starts a sandbox with a version of Flux that is not the default, and checks
// the installed objects and the reported versions of the running controllers.
func TestSandboxVersion(t *testing.T) {
	t.Parallel()
	sh := newUser(t)
	newest := controllers.Distributions[0]
	dir := testtemp.Short(t)
	_, stderr, err := sh.try("flux", "sandbox", "up", "--flux=2.7", "--dir="+dir)
	if err == nil || !strings.Contains(stderr, `unknown Flux version "2.7": must be one of `+strings.Join(controllers.EmbeddedVersions(), ", ")) {
		t.Errorf("an unknown version: %v\n%s", err, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an unknown version leaves %v in the directory (%v)", left, err)
	}
	if words := sh.run("flux", "__complete", "sandbox", "up", "--flux", ""); !strings.Contains(words, strings.Join(controllers.EmbeddedVersions(), "\n")) {
		t.Errorf("completions of --flux: %q", words)
	}
	sh.t.Cleanup(func() {
		if err := (&testcluster.Cluster{Dir: dir}).Down(); err != nil {
			t.Error(err)
		}
	})
	_, stderr, err = sh.try("flux", "sandbox", "up", "--flux="+newest.Minor(), "--dir="+dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var status struct {
		Processes []struct{ Name, Pod, Version string }
	}
	if err := json.Unmarshal([]byte(sh.run("flux", "sandbox", "status", "-o", "json", "--dir="+dir)), &status); err != nil {
		t.Fatal(err)
	}
	sh = sh.with("KUBECONFIG=" + filepath.Join(dir, "kubeconfig"))
	if installed := sh.run("flux", "version"); !strings.Contains(installed, "distribution: flux-v"+newest.Version) {
		t.Errorf("installed is:\n%s", installed)
	}
	readme, err := os.ReadFile(filepath.Join(testcluster.Root(), "sandbox", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	running := 0
	for _, p := range status.Processes {
		if p.Pod == "" {
			continue
		}
		running++
		other := p.Name + " " + p.Version + " instead of " + newest.Tags[p.Name]
		if p.Version == "" || (p.Version != newest.Tags[p.Name]) != strings.Contains(stderr, other) {
			t.Errorf("%s runs in version %q, reported is:\n%s", p.Name, p.Version, stderr)
		}
		if row := "| " + p.Name + " | " + p.Version + " |"; !strings.Contains(string(readme), row) {
			t.Errorf("the table of sandbox/README.md has no row %q", row)
		}
	}
	if running != len(newest.Tags) {
		t.Errorf("%d controllers run, want %d: %v", running, len(newest.Tags), status)
	}
	// The CRDs of Flux 2.10 have no default for the timeout, without which older controllers panic.
	sh.run("kubectl", "apply", "-f", tempFile(sh.t, "untimed.yaml", `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: untimed, namespace: default}
spec: {interval: 1h, url: "oci://127.0.0.1:1/none"}
`))
	sh.run("kubectl", "-n", "default", "wait", waitFlag, "--for=condition=FetchFailed", "ocirepository/untimed")
}
