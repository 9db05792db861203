package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string][]string{
		"all":  Names(),
		"none": {},
		"source-watcher,source-controller,source-watcher": {"source-controller", "source-watcher"},
		"flux-operator,source-controller":                 {"source-controller", "flux-operator"},
	} {
		got, err := Parse(choice)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse(%q): %s", choice, diff)
		}
		back, err := Parse(Format(got))
		if err != nil || !cmp.Equal(back, got) {
			t.Errorf("Parse(Format(%v)) = %v, %v", got, back, err)
		}
	}
	if _, err := Parse("sauce-controller"); err == nil || !strings.Contains(err.Error(), `unknown controller "sauce-controller"`) {
		t.Errorf("error = %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	beside := t.TempDir()
	if dir, err := Find(beside, nil); dir != "" || err != nil {
		t.Errorf("no controller needs no directory: %q, %v", dir, err)
	}
	names := []string{"source-controller", "helm-controller"}
	if _, err := Find(beside, names); err == nil || !strings.Contains(err.Error(), "no binary of source-controller, helm-controller") {
		t.Errorf("error = %v", err)
	}
	dir := filepath.Join(beside, "controllers")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Find(beside, names); got != dir || err != nil {
		t.Errorf("Find = %q, %v", got, err)
	}
	if _, err := Find(beside, append(names, "source-watcher")); err == nil || !strings.Contains(err.Error(), "no binary of source-watcher beside") {
		t.Errorf("error = %v", err)
	}
}
