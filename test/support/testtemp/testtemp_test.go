package testtemp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxkit/flux/test/support/testtemp"
)

// tests simulates the tests of a package.
type tests func() int

func (f tests) Run() int { return f() }

// leave creates a file in a directory of the temporary directory.
func leave(t *testing.T, folder, file string) {
	t.Helper()
	at := filepath.Join(os.TempDir(), folder)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if file == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(at, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		run  tests
		code int
	}{
		"leaves nothing":                        {func() int { return 0 }, 0},
		"fails":                                 {func() int { return 2 }, 2},
		"leaves a directory":                    {func() int { leave(t, "flux-repository-1", ""); return 0 }, 1},
		"fails and leaves a directory":          {func() int { leave(t, "flux-repository-1", ""); return 2 }, 2},
		"leaves the empty directory of scripts": {func() int { leave(t, "go-test-script1", ""); return 0 }, 0},
		"leaves a file of a script":             {func() int { leave(t, "go-test-script1", "file"); return 0 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			t.Setenv("TMPDIR", outer)
			if code := (testtemp.M{Tests: c.run}).Run(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if got := os.Getenv("TMPDIR"); got != outer {
				t.Errorf("TMPDIR is %s", got)
			}
			if left, err := os.ReadDir(outer); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
