package remote

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep checks that the directory of a killed process is removed after a day; directories of
// others are kept.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	for name, age := range map[string]time.Duration{
		"flux-repository-1": 25 * time.Hour, "flux-repository-2": 23 * time.Hour, "flux-other": 48 * time.Hour,
		"flux-repository-backup-of-mine": 48 * time.Hour, "flux-repository-3-unmarked": 48 * time.Hour, "flux-repository-4": 48 * time.Hour,
	} {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(folder, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "flux-repository-4" { // a directory of another program
			if err := os.WriteFile(filepath.Join(folder, marker), nil, 0o600); err != nil {
				t.Fatal(err)
			}
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
	var want []string
	for _, name := range []string{"flux-other", "flux-repository-2", "flux-repository-3-unmarked", "flux-repository-4", "flux-repository-backup-of-mine"} {
		want = append(want, filepath.Join(dir, name))
	}
	if !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}
