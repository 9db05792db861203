package git_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
)

// clone creates a repository with names that sort differently in Git, a symbolic link, an
// executable, and ignored files.
func clone(t *testing.T) (string, *gogit.Repository) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"a/file.yaml": "a: 1\n", "a.yaml": "b: 2\n", "a-b/file.yaml": "c: 3\n", "run.sh": "#!/bin/sh\n",
		".gitignore": "ignored\n", "sub/.gitignore": "*.tmp\n!kept.tmp\n", "sub/kept.tmp": "kept", "sub/left.tmp": "left", "ignored/x": "x",
	} {
		write(t, root, name, text)
	}
	if err := os.Chmod(filepath.Join(root, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.yaml", filepath.Join(root, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	repository, err := gogit.PlainInit(root, false)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, repository)
	return root, repository
}

func commit(t *testing.T, repository *gogit.Repository) {
	t.Helper()
	work, err := repository.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := work.AddWithOptions(&gogit.AddOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	who := &object.Signature{Name: "test", Email: "test@example.com", When: time.Unix(1700000000, 0)}
	if _, err := work.Commit("all", &gogit.CommitOptions{Author: who}); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func trees(t *testing.T, folder string) (commit, work *filetree.Tree) {
	t.Helper()
	repository, err := git.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := repository.Close(); err != nil {
			t.Error(err)
		}
	})
	head, err := repository.Commit(git.Revision{Name: "HEAD"})
	if err != nil {
		t.Fatal(err)
	}
	if commit, err = repository.At(head); err != nil {
		t.Fatal(err)
	}
	if work, err = repository.WorkTree(t.Context()); err != nil {
		t.Fatal(err)
	}
	return commit, work
}

func TestTrees(t *testing.T) {
	t.Parallel()
	root, _ := clone(t)
	committed, work := trees(t, filepath.Join(root, "sub"))
	for name, files := range map[string]*filetree.Tree{"commit": committed, "work tree": work} {
		if err := fstest.TestFS(files, "a/file.yaml", "a.yaml", "a-b/file.yaml", "run.sh", "sub/kept.tmp"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, gone := range []string{"link.yaml", "empty", "ignored", "sub/left.tmp", ".git", "a.yaml/below"} {
			if _, err := fs.Stat(files, gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", name, gone, err)
			}
		}
	}
	for _, name := range []string{".", "a", "a/file.yaml", "a.yaml", "a-b", "run.sh", "sub"} {
		want, err := committed.Hash(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := work.Hash(name); got != want || err != nil {
			t.Errorf("%s: the work tree has hash %s, the commit of the same files %s (%v)", name, got, want, err)
		}
	}
}

// TestChanged checks that hashes differ for exactly the changed files and folders.
func TestChanged(t *testing.T) {
	t.Parallel()
	root, _ := clone(t)
	write(t, root, "a/new.yaml", "not committed: yet\n")
	write(t, root, "ignored/y", "y")
	committed, work := trees(t, root)
	same := map[string]bool{}
	for _, name := range []string{".", "a", "a/file.yaml", "a-b", "sub"} {
		was, err := committed.Hash(name)
		if err != nil {
			t.Fatal(err)
		}
		is, err := work.Hash(name)
		if err != nil {
			t.Fatal(err)
		}
		same[name] = was == is
	}
	if d := cmp.Diff(map[string]bool{".": false, "a": false, "a/file.yaml": true, "a-b": true, "sub": true}, same); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestBare opens a repository without a work tree.
func TestBare(t *testing.T) {
	t.Parallel()
	root, _ := clone(t)
	bare := t.TempDir()
	if _, err := gogit.PlainClone(bare, true, &gogit.CloneOptions{URL: root}); err != nil {
		t.Fatal(err)
	}
	repository, err := git.Open(bare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := repository.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := repository.Commit(git.Revision{Name: "HEAD"}); err != nil {
		t.Error(err)
	}
	if _, err := repository.WorkTree(t.Context()); !errors.Is(err, git.ErrBare) {
		t.Errorf("its work tree: %v", err)
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	if _, err := git.Open(t.TempDir()); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("outside of a repository: %v", err)
	}
	root, _ := clone(t)
	repository, err := git.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := repository.Close(); err != nil {
			t.Error(err)
		}
	})
	var unknown *git.UnknownError
	if _, err := repository.Commit(git.Revision{Name: "gone"}); !errors.As(err, &unknown) || unknown.Shallow {
		t.Errorf("an unknown revision: %v", err)
	}
}
