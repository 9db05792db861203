package e2e_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiffBranch checks that diff builds the same files of a branch as
// source-controller, with include, ignore, sparse checkout
// and submodules.
func TestDiffBranch(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	f.shell = f.shell.with("FLUX_NAMESPACE=" + f.namespace)
	library := newGit(f.shell, f.cluster, f.namespace+"-lib")
	library.commit("Six", map[string]string{"six.yaml": configMap("six", "a: b")})
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
	linkLibrary(f.git, library)
	f.seed(strings.NewReplacer("${URL}", f.git.address, "${NS}", f.namespace).Replace(revisionObjects))
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

const revisionObjects = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: sparse}
spec:
  interval: 1h
  url: ${URL}
  ref: {branch: main}
  secretRef: {name: git}
  sparseCheckout: [./files, library]
  recurseSubmodules: true
  ignore: |
    /files/by-spec/three.yaml
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: linked}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}, recurseSubmodules: true}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: including}
spec:
  interval: 1h
  url: ${URL}
  ref: {branch: main}
  secretRef: {name: git}
  include: [{repository: {name: linked}, fromPath: library, toPath: files/library}]
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: revision}
spec: {interval: 1h, prune: true, path: ./, targetNamespace: ${NS}, sourceRef: {kind: GitRepository, name: sparse}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: linked}
spec: {interval: 1h, prune: true, path: ./library, namePrefix: linked-, targetNamespace: ${NS}, sourceRef: {kind: GitRepository, name: linked}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: included}
spec: {interval: 1h, prune: true, path: ./files, namePrefix: included-, targetNamespace: ${NS}, sourceRef: {kind: GitRepository, name: including}}
`

// linkLibrary adds the other repository as a submodule with a relative URL.
func linkLibrary(g, library *gitClient) {
	t := g.shell.t
	t.Helper()
	commit := strings.TrimSpace(library.run("rev-parse", "HEAD"))
	g.run("config", "--file", ".gitmodules", "submodule.library.path", "library")
	g.run("config", "--file", ".gitmodules", "submodule.library.url", "../"+path.Base(library.address))
	if err := os.Mkdir(filepath.Join(g.dir, "library"), 0o700); err != nil { // the submodule is not checked out
		t.Fatal(err)
	}
	g.run("add", ".gitmodules")
	g.run("update-index", "--add", "--cacheinfo", "160000,"+commit+",library")
	g.run("commit", "--quiet", "--message=Link")
	g.run("push", "--quiet")
}
