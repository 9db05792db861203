package testcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/helper"
)

// buildTime is the maximum duration of the builds.
const buildTime = 5 * time.Minute

// BuildFlux builds flux and other programs of cmd from the working tree. It returns their folder,
// which is removed with the test.
func BuildFlux(t testing.TB, others ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flux-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), buildTime)
	defer cancel()
	for _, program := range append([]string{"flux"}, others...) {
		cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w -X main.version=0.0.0-test", "-o", filepath.Join(dir, program), "./cmd/"+program)
		cmd.Dir = Root()
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", program, err, out)
		}
	}
	return dir
}

// AddHelper builds flux-helper and puts it beside a program. go build does not link it again in Bin
// if it is up to date.
func AddHelper(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	built := filepath.Join(Bin(), helper.Program)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", built, "./cmd/"+helper.Program)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", helper.Program, err, out)
	}
	return os.Symlink(built, filepath.Join(filepath.Dir(program), helper.Program))
}
