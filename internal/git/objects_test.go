package git_test

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/git"
)

// written writes a tree object, which need not be valid, and returns its hash.
func written(t *testing.T, folder string, entries ...string) string {
	t.Helper()
	return run(t, folder, strings.NewReader(strings.Join(entries, "")), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
}

func entry(t *testing.T, mode, name, hash string) string {
	t.Helper()
	id, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	return mode + " " + name + "\x00" + string(id)
}

// walked returns the error of a walk through the files of a tree object.
func walked(t *testing.T, folder, tree string) error {
	t.Helper()
	clone, err := git.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := clone.Close(); err != nil {
			t.Error(err)
		}
	}()
	commit, err := clone.Commit(git.ParseRevision(run(t, folder, nil, "commit-tree", "-m", "x", tree)))
	if err != nil {
		t.Fatal(err)
	}
	files, err := clone.At(commit)
	if err != nil {
		t.Fatal(err)
	}
	return fs.WalkDir(files, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
}

// TestHostileTrees reads trees that no checkout has: names that lead out of their directory, and
// directories that contain the same directories a billion times.
func TestHostileTrees(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run(t, folder, nil, "init", "-q", "-b", "main")
	blob := run(t, folder, strings.NewReader("x"), "hash-object", "-w", "--stdin")
	below := written(t, folder, entry(t, "100644", "file", blob))
	for _, name := range []string{".", "..", "a/b"} {
		tree := written(t, folder, entry(t, "40000", name, below))
		if err := walked(t, folder, tree); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has the invalid name %q", name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb := below
	for range 9 {
		var entries []string
		for i := range 10 {
			entries = append(entries, entry(t, "40000", fmt.Sprint("d", i), bomb))
		}
		bomb = written(t, folder, entries...)
	}
	if err := walked(t, folder, bomb); err == nil || !strings.Contains(err.Error(), "more than 1000000 entries") {
		t.Errorf("a billion files: %v", err)
	}
}
