package testcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fluxkit/flux/internal/helper"
)

// Programs returns the directory with flux, flux-helper and flux-ui of the working tree, and links to
// flux-sandbox, kubectl and the controllers. Each test binary builds them once, in the same directory,
// because the go command does not link programs again that are up to date.
func Programs(t testing.TB) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// ProgramsWith returns a directory with the flux that a main package builds, and flux-helper and flux-ui of the working tree.
func ProgramsWith(main string) (string, error) {
	shared, err := programs()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(shared, filepath.Base(filepath.Dir(main)))
	if err := build(dir, main); err != nil {
		return "", err
	}
	return dir, link(shared, dir, helper.Program, helper.Dashboard)
}

// programs builds the programs on its first call.
var programs = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(Bin(), "test")
	if err := build(dir, "./cmd/flux", "./cmd/"+helper.Program, "./cmd/flux/"+helper.Dashboard); err != nil {
		return "", err
	}
	return dir, link(Bin(), dir, helper.Sandbox, "kubectl", "controllers")
})

// build builds main packages of the working tree.
func build(dir string, packages ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := append([]string{"build", "-ldflags", "-s -w -X main.version=0.0.0-test", "-o", dir + string(filepath.Separator)}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building flux: %w\n%s", err, out)
	}
	return nil
}

// link adds links to programs in another directory.
func link(from, to string, names ...string) error {
	for _, name := range names {
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
