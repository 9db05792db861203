package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// buildFetched builds Kustomizations of all kinds without a local source, from the artifacts of source-controller, and
// compares the result with the live objects.
func buildFetched(f *fixture) {
	f.t.Helper()
	for name, chain := range chains {
		if !strings.HasPrefix(name, "ks-") {
			continue
		}
		outside := f.shell.in(f.t.TempDir()) // of a Git clone
		out, stderr, err := outside.try("flux", "build", "kustomization", name, "--namespace=apps")
		if lines := strings.Split(out, "\n"); err != nil || !slices.Contains(lines, "  name: "+name) {
			f.t.Errorf("building %s from %s: %v\n%s%s", name, chain[1], err, out, stderr)
		}
		if out := f.shell.run("flux", "diff", "kustomization", name, "--namespace=apps"); out != "" {
			f.t.Errorf("%s differs from the artifact of %s:\n%s", name, chain[1], out)
		}
	}
	for source, file := range map[string][2]string{
		"git app": {"git/app.yaml", configMapNamed("ks-git")}, "oci manifests": {"oci/app.yaml", configMapNamed("ks-oci")},
		"bucket app": {"bucket/app.yaml", configMapNamed("ks-bucket")}, "chart own": {"app/templates/app.yaml", releaseTemplate},
		"external manifests": {"external/app.yaml", configMapNamed("ks-external")},
	} {
		comparePulled(f, strings.Fields(source), file[0], file[1])
	}
	compareArtifacts(f)
	index := strings.TrimSpace(f.shell.run("flux", "pull", "source", "helm", "app", "--namespace=apps", "--list"))
	if !strings.HasPrefix(index, "index-") || !strings.HasSuffix(index, ".yaml") {
		f.t.Errorf("the artifact of the HelmRepository has the files %q", index)
	}
}

// compareArtifacts compares the output of build and diff artifact-generator with the artifacts that source-watcher
// stores.
func compareArtifacts(f *fixture) {
	f.t.Helper()
	outside := f.shell.in(f.t.TempDir()) // of a Git clone
	if out, stderr, err := outside.try("flux", "diff", "artifact-generator", "parts", "--namespace=apps"); err != nil || out != "" || !strings.Contains(stderr, "no changes detected") {
		f.t.Errorf("the artifacts differ from those of the same sources: %v\n%s%s", err, out, stderr)
	}
	built := filepath.Join(f.t.TempDir(), "built")
	outside.run("flux", "build", "artifact-generator", "parts", "--namespace=apps", "--output="+built)
	for _, name := range []string{"manifests", "chart"} {
		pulled := filepath.Join(f.t.TempDir(), name)
		outside.run("flux", "pull", "source", "external", name, "--namespace=apps", "--output="+pulled)
		outside.run("diff", "--recursive", filepath.Join(built, name), pulled)
	}
	changed := f.t.TempDir()
	for name, content := range map[string]string{
		"external/app.yaml": "changed: true\n", "external/more.yaml": "more: true\n", "app/Chart.yaml": chart, "app/templates/app.yaml": releaseTemplate, "other.yaml": "in: none\n",
	} {
		writeFile(f.t, changed, name, content)
	}
	local := "--local-sources=GitRepository/apps/app=" + changed
	out, stderr, err := outside.try("flux", "diff", "artifact-generator", "parts", "--namespace=apps", local)
	want := "► ExternalArtifact/apps/manifests changed\n± external/app.yaml\n+ external/more.yaml\n► ExternalArtifact/apps/chart changed\n- app/values.yaml\n"
	if err == nil || out != want {
		f.t.Errorf("changed files: %v\n%s%s, want\n%s", err, out, stderr, want)
	}
	generator := tempFile(f.t, "generator.yaml", `apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: parts, namespace: apps}
spec:
  sources: [{alias: git, kind: GitRepository, name: app}]
  artifacts:
  - {name: chart, copy: [{from: "@git/app/**", to: "@artifact/app/"}]}
  - {name: renamed, copy: [{from: "@git/external/**", to: "@artifact/external/"}]}
`)
	out, stderr, err = outside.try("flux", "diff", "artifact-generator", "parts", "--namespace=apps", "--generator-file="+generator)
	want = "► ExternalArtifact/apps/renamed created\n+ external/app.yaml\n► ExternalArtifact/apps/manifests deleted\n- external/app.yaml\n"
	if err == nil || out != want {
		f.t.Errorf("a changed generator: %v\n%s%s, want\n%s", err, out, stderr, want)
	}
}

// comparePulled compares a file in the artifact of a source with its content, and the list of files with the unpacked
// files.
func comparePulled(f *fixture, source []string, name, content string) {
	f.t.Helper()
	args := append([]string{"pull", "source", "--namespace=apps"}, source...)
	directory := filepath.Join(f.t.TempDir(), "pulled")
	f.shell.run("flux", append(slices.Clone(args), "--output="+directory)...)
	if got, err := os.ReadFile(filepath.Join(directory, filepath.FromSlash(name))); err != nil || string(got) != content {
		f.t.Errorf("%s of %s is %q (%v), want %q", name, source, got, err, content)
	}
	var files []string
	err := fs.WalkDir(os.DirFS(directory), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if list := strings.Fields(f.shell.run("flux", append(args, "--list")...)); err != nil || !slices.Equal(list, files) {
		f.t.Errorf("the list of files of %s is %q, want %q (%v)", source, list, files, err)
	}
}
