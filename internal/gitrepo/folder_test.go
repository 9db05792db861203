package gitrepo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep: what a killed process left is removed a day later, and nothing else.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	for name, age := range map[string]time.Duration{
		"flux-repository-1": 25 * time.Hour, "flux-repository-2": 23 * time.Hour, "flux-other": 48 * time.Hour,
	} {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(folder, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(folder, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir, now)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "flux-other"), filepath.Join(dir, "flux-repository-2")}
	if !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}
