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

// AddHelper adds flux-helper and flux-ui of the working tree to the directory of a program.
func AddHelper(program string) error {
	dir, err := programs()
	if err != nil {
		return err
	}
	for _, name := range []string{helper.Program, helper.Dashboard} {
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(filepath.Dir(program), name)); err != nil {
			return err
		}
	}
	return nil
}

// programs builds the programs on its first call.
var programs = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(Bin(), "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-ldflags", "-s -w -X main.version=0.0.0-test", "-o", dir+string(filepath.Separator), "./cmd/flux", "./cmd/"+helper.Program, "./cmd/flux/"+helper.Dashboard)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building flux: %w\n%s", err, out)
	}
	for _, name := range []string{helper.Sandbox, "kubectl", "controllers"} {
		if err := os.Symlink(filepath.Join(Bin(), name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return dir, nil
})
