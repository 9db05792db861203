package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRevisionIsTheArtifact checks that diff builds the same files of a branch as
// source-controller, with include, ignore, sparse checkout
// and submodules.
func TestRevisionIsTheArtifact(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	bootstrap(f, "--components=source-controller,kustomize-controller")
	f.cluster.Sandbox(t, "git", "create", "lib")
	f.git.commit("Files", map[string]string{
		"files/one.yaml":              configMap("one", "a: b"),
		"files/.sourceignore":         "ignored.yaml\n",
		"files/ignored.yaml":          configMap("ignored", "a: b"),
		"files/by-spec/two.yaml":      configMap("two", "a: b"),
		"files/by-spec/three.yaml":    configMap("three", "a: b"),
		"files/.github/workflow.yaml": configMap("workflow", "a: b"),
		"files-more/four.yaml":        configMap("four", "a: b"),
		"elsewhere/five.yaml":         configMap("five", "a: b"),
	})
	pushLibrary(f)
	linkLibrary(f)
	f.git.commit("Objects", map[string]string{"clusters/test/revision.yaml": revisionObjects(f)})
	f.shell.run("flux", "reconcile", "source", "git", "flux-system")
	reconcile(f)
	for name, want := range map[string]int{"revision": 4, "linked": 1, "included": 5} {
		f.shell.run("flux", "wait", "kustomization", name)
		for _, from := range [][]string{nil, {"--branch=main"}} {
			args := append([]string{"diff", "kustomization", name, "-o", "json", "--progress-bar=false"}, from...)
			var report struct {
				Different bool
				Summary   struct{ Unchanged int }
			}
			if err := json.Unmarshal([]byte(f.shell.run("flux", args...)), &report); err != nil {
				t.Fatal(err)
			}
			if report.Different || report.Summary.Unchanged != want {
				t.Errorf("%s from %v: %+v, want %d unchanged objects", name, from, report, want)
			}
		}
	}
}

func revisionObjects(f *fixture) string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: sparse, namespace: flux-system}
spec:
  interval: 1h
  url: ` + f.git.url + `
  ref: {branch: main}
  sparseCheckout: [./files, library]
  recurseSubmodules: true
  ignore: |
    /files/by-spec/three.yaml
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: linked, namespace: flux-system}
spec: {interval: 1h, url: "` + f.git.url + `", ref: {branch: main}, recurseSubmodules: true}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: including, namespace: flux-system}
spec:
  interval: 1h
  url: ` + f.git.url + `
  ref: {branch: main}
  include: [{repository: {name: linked}, fromPath: library, toPath: files/library}]
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: revision, namespace: flux-system}
spec: {interval: 1h, prune: true, path: ./, targetNamespace: default, sourceRef: {kind: GitRepository, name: sparse}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: linked, namespace: flux-system}
spec: {interval: 1h, prune: true, path: ./library, namePrefix: linked-, targetNamespace: default, sourceRef: {kind: GitRepository, name: linked}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: included, namespace: flux-system}
spec: {interval: 1h, prune: true, path: ./files, namePrefix: included-, targetNamespace: default, sourceRef: {kind: GitRepository, name: including}}
`
}

// pushLibrary creates another repository.
func pushLibrary(f *fixture) {
	f.t.Helper()
	dir := f.t.TempDir()
	url := f.cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/lib.git"
	if err := os.WriteFile(filepath.Join(dir, "six.yaml"), []byte(configMap("six", "a: b")), 0o600); err != nil {
		f.t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "--message=Six"}, {"push", "--quiet", url, "main"},
	} {
		f.git.run(append([]string{"-C", dir}, args...)...)
	}
}

// linkLibrary adds the other repository as a submodule with a relative URL.
func linkLibrary(f *fixture) {
	f.t.Helper()
	url := f.cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/lib.git"
	commit, _, _ := strings.Cut(f.git.run("ls-remote", url, "main"), "\t")
	f.git.run("config", "--file", ".gitmodules", "submodule.library.path", "library")
	f.git.run("config", "--file", ".gitmodules", "submodule.library.url", "../lib.git")
	if err := os.Mkdir(filepath.Join(f.git.dir, "library"), 0o700); err != nil { // the submodule is not checked out
		f.t.Fatal(err)
	}
	f.git.run("add", ".gitmodules")
	f.git.run("update-index", "--add", "--cacheinfo", "160000,"+commit+",library")
	f.git.run("commit", "--quiet", "--message=Link")
	f.git.run("push", "--quiet")
}
