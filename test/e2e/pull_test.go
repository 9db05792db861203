package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// buildFetched builds Kustomizations without a local source, of every kind, from the
// artifacts of source-controller; the result equals the live objects.
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
	index := strings.TrimSpace(f.shell.run("flux", "pull", "source", "helm", "app", "--namespace=apps", "--list"))
	if !strings.HasPrefix(index, "index-") || !strings.HasSuffix(index, ".yaml") {
		f.t.Errorf("the artifact of the HelmRepository has the files %q", index)
	}
}

// comparePulled compares a file in the artifact of a source with its content, and the list of files with
// those that are unpacked.
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
