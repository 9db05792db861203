package release_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestReproducible builds flux and its helper from two copies of the sources in different directories, and
// compares the programs. make reproducible does so for all programs, and compiles everything again.
func TestReproducible(t *testing.T) {
	t.Parallel()
	var built [2]map[string][]byte
	for i, folder := range []string{"one", filepath.Join("two", "with", "another", "length")} {
		copied := filepath.Join(t.TempDir(), folder)
		for _, name := range []string{"cmd", "internal", "pkg", "manifests"} {
			if err := os.CopyFS(filepath.Join(copied, name), os.DirFS(filepath.Join("..", "..", name))); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"go.mod", "go.sum", "Makefile"} {
			content, err := os.ReadFile(filepath.Join("..", "..", name))
			if err == nil {
				err = os.WriteFile(filepath.Join(copied, name), content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		// The CRDs were copied and are not generated again.
		cmd := exec.CommandContext(t.Context(), "make", "--old-file=manifests", "build", "VERSION=1.2.3", "COMMIT=0123456789", "DATE=2026-01-02T03:04:05Z")
		cmd.Dir = copied
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		built[i] = map[string][]byte{}
		for _, name := range []string{"flux", "flux-helper", "flux-ui"} {
			content, err := os.ReadFile(filepath.Join(copied, "bin", name))
			if err != nil {
				t.Fatal(err)
			}
			built[i][name] = content
			if bytes.Contains(content, []byte(copied)) {
				t.Errorf("%s contains the path of its sources", name)
			}
		}
	}
	for name, content := range built[0] {
		if !bytes.Equal(content, built[1][name]) {
			t.Errorf("%s depends on the directory that it is built in", name)
		}
	}
}
