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
	s := newStory(t)
	s.bootstrap("--components=source-controller,kustomize-controller")
	s.cluster.Sandbox(t, "git", "create", "lib")
	s.commit("Files", map[string]string{
		"files/one.yaml":              configMap("one", "a: b"),
		"files/.sourceignore":         "ignored.yaml\n",
		"files/ignored.yaml":          configMap("ignored", "a: b"),
		"files/by-spec/two.yaml":      configMap("two", "a: b"),
		"files/by-spec/three.yaml":    configMap("three", "a: b"),
		"files/.github/workflow.yaml": configMap("workflow", "a: b"),
		"files-more/four.yaml":        configMap("four", "a: b"),
		"elsewhere/five.yaml":         configMap("five", "a: b"),
	})
	s.library()
	s.linkLibrary()
	s.commit("Objects", map[string]string{"clusters/test/revision.yaml": s.revisionObjects()})
	s.run("flux", "reconcile", "source", "git", "flux-system")
	s.reconcile()
	for name, want := range map[string]int{"revision": 4, "linked": 1, "included": 5} {
		s.run("flux", "wait", "kustomization", name)
		for _, from := range [][]string{nil, {"--branch=main"}} {
			args := append([]string{"diff", "kustomization", name, "-o", "json", "--progress-bar=false"}, from...)
			var report struct {
				Different bool
				Summary   struct{ Unchanged int }
			}
			if err := json.Unmarshal([]byte(s.run("flux", args...)), &report); err != nil {
				t.Fatal(err)
			}
			if report.Different || report.Summary.Unchanged != want {
				t.Errorf("%s from %v: %+v, want %d unchanged objects", name, from, report, want)
			}
		}
	}
}

func (s *story) revisionObjects() string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: sparse, namespace: flux-system}
spec:
  interval: 1h
  url: ` + s.url + `
  ref: {branch: main}
  sparseCheckout: [./files, library]
  recurseSubmodules: true
  ignore: |
    /files/by-spec/three.yaml
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: linked, namespace: flux-system}
spec: {interval: 1h, url: "` + s.url + `", ref: {branch: main}, recurseSubmodules: true}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: including, namespace: flux-system}
spec:
  interval: 1h
  url: ` + s.url + `
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

// library creates another repository.
func (s *story) library() {
	s.Helper()
	dir := s.TempDir()
	url := s.cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/lib.git"
	if err := os.WriteFile(filepath.Join(dir, "six.yaml"), []byte(configMap("six", "a: b")), 0o600); err != nil {
		s.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "--message=Six"}, {"push", "--quiet", url, "main"},
	} {
		s.run("git", append([]string{"-C", dir}, args...)...)
	}
}

// linkLibrary adds the other repository as a submodule with a relative URL.
func (s *story) linkLibrary() {
	s.Helper()
	url := s.cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/lib.git"
	commit, _, _ := strings.Cut(s.run("git", "ls-remote", url, "main"), "\t")
	s.run("git", "config", "--file", ".gitmodules", "submodule.library.path", "library")
	s.run("git", "config", "--file", ".gitmodules", "submodule.library.url", "../lib.git")
	if err := os.Mkdir(filepath.Join(s.clone, "library"), 0o700); err != nil { // the submodule is not checked out
		s.Fatal(err)
	}
	s.run("git", "add", ".gitmodules")
	s.run("git", "update-index", "--add", "--cacheinfo", "160000,"+commit+",library")
	s.run("git", "commit", "--quiet", "--message=Link")
	s.run("git", "push", "--quiet")
}
