package testcluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// buildTime bounds the build of flux, which takes a minute at worst.
const buildTime = 5 * time.Minute

// BuildFlux builds flux, and other programs of cmd, out of the working tree into
// a temporary folder and returns the folder, to be put first on PATH.
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
