package git_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/git"
)

// gitIn runs git in a repository at the given second of an hour, and returns its output.
func gitIn(t *testing.T, folder string, second int, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	date := fmt.Sprintf("2026-11-01T10:00:%02dZ", second)
	cmd.Dir, cmd.Env = folder, []string{
		"HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "PATH=/usr/bin:/bin:/usr/local/bin",
		"GIT_AUTHOR_NAME=Ada \x1b[31mLovelace", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com",
		"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestBetween compares the result with git log for every pair of commits in histories with merges,
// equal times and clocks that go backwards.
func TestBetween(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(int) int{
		"in order": func(i int) int { return i }, "at once": func(int) int { return 0 }, "backwards": func(i int) int { return 50 - i },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			i := 0
			run := func(args ...string) string { i++; return gitIn(t, root, second(i), args...) }
			run("init", "-q", "-b", "main")
			commit := func(subject string) { run("commit", "-q", "--allow-empty", "-m", subject) }
			commit("one")
			commit("two")
			run("checkout", "-q", "-b", "side")
			commit("side one")
			commit("side two")
			run("checkout", "-q", "main")
			commit("three")
			run("merge", "-q", "--no-ff", "-m", "merge side", "side")
			commit("four")
			run("checkout", "-q", "-b", "other", "main~2")
			commit("other")
			repository, err := git.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = repository.Close() })
			all := strings.Fields(run("rev-list", "--all"))
			for _, base := range all {
				for _, head := range all {
					want := strings.Fields(run("rev-list", base+".."+head))
					commits, total, err := repository.History().Between(t.Context(), base, head, 100)
					var got []string
					for _, c := range commits {
						got = append(got, c.Hash)
					}
					slices.Sort(want)
					slices.Sort(got)
					if err != nil || total != len(want) || !slices.Equal(got, want) {
						t.Errorf("%s..%s: %v (%d, %v), want %v", base, head, got, total, err, want)
					}
				}
			}
		})
	}
}

func TestBetweenBoundsText(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	gitIn(t, root, 1, "init", "-q", "-b", "main")
	gitIn(t, root, 1, "commit", "-q", "--allow-empty", "-m", "one")
	gitIn(t, root, 2, "commit", "-q", "--allow-empty", "-m", "two \x1b]0;x\x07\u202egnp.exe\n\nbody "+strings.Repeat("x", 500))
	gitIn(t, root, 3, "commit", "-q", "--allow-empty", "-m", strings.Repeat("long ", 100))
	repository, err := git.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repository.Close() })
	base, head := gitIn(t, root, 4, "rev-parse", "main~2"), gitIn(t, root, 4, "rev-parse", "main")
	commits, total, err := repository.History().Between(t.Context(), base, head, 10)
	if err != nil || total != 2 {
		t.Fatalf("%v, %d, %v", commits, total, err)
	}
	if c := commits[1]; c.Subject != "two \x1b]0;x\x07\u202egnp.exe" || c.Author != "Ada \x1b[31mLovelace" || c.Time.Second() != 2 {
		t.Errorf("got %+q", c)
	}
	if n := len([]rune(commits[0].Subject)); n != 201 {
		t.Errorf("a subject of %d characters", n)
	}
	if commits, total, err = repository.History().Between(t.Context(), base, head, 1); err != nil || len(commits) != 1 || total != 2 {
		t.Errorf("bounded: %v, %d, %v", commits, total, err)
	}
	if _, _, err = repository.History().Between(t.Context(), strings.Repeat("1", 40), head, 1); !errors.Is(err, git.ErrIncomplete) {
		t.Errorf("an unknown commit: %v", err)
	}
}
