package git_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/git"
)

// TestLineage compares the result with git log --first-parent, and the files of each commit with git
// diff.
func TestLineage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	i := 0
	run := func(args ...string) string { i++; return gitIn(t, root, i, args...) }
	run("init", "-q", "-b", "main")
	commit := func(name string) {
		write(t, root, name, name)
		run("add", "--all")
		run("commit", "-q", "-m", name)
	}
	commit("one")
	commit("folder/two")
	run("checkout", "-q", "-b", "side")
	commit("side")
	run("checkout", "-q", "main")
	run("mv", "one", "moved")
	commit("three")
	run("merge", "-q", "--no-ff", "-m", "merge side", "side")
	run("rm", "-q", "three")
	run("commit", "-q", "-m", "remove")
	repository, err := git.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repository.Close() })
	first, head := plumbing.NewHash(run("rev-list", "--max-parents=0", "HEAD")), plumbing.NewHash(run("rev-parse", "HEAD"))
	commits, err := repository.History().Lineage(t.Context(), first, head)
	want := strings.Fields(run("rev-list", "--first-parent", "--reverse", "HEAD"))
	if err != nil || len(commits) != len(want) {
		t.Fatalf("%v %v, want %v", commits, err, want)
	}
	for i, c := range commits {
		info, err := repository.History().Describe(c)
		files, filesErr := repository.History().Changed(t.Context(), c)
		changed := []string{"one"}
		if i > 0 {
			changed = strings.Fields(run("diff", "--name-only", "--no-renames", c.String()+"^", c.String()))
		}
		slices.Sort(changed)
		if err != nil || filesErr != nil || c.String() != want[i] || info.Hash != want[i] || !slices.Equal(files, changed) {
			t.Errorf("commit %d is %s %q with %v (%v, %v), want %s with %v", i, c, info.Subject, files, err, filesErr, want[i], changed)
		}
	}
	if _, err := repository.History().Lineage(t.Context(), plumbing.NewHash(run("rev-parse", "side")), head); !errors.Is(err, git.ErrNoLineage) {
		t.Errorf("a merged commit: %v", err)
	}
	if _, err := repository.History().Lineage(t.Context(), head, first); !errors.Is(err, git.ErrNoLineage) {
		t.Errorf("the other way: %v", err)
	}
}
