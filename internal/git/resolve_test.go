package git_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/git"
)

// TestNames resolves names that are references, the beginnings of commit IDs, or both, as Git does.
func TestNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		args = append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.warnAmbiguousRefs=false"}, args...)
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet", "--initial-branch=main")
	var commits []string
	for i := range 6 {
		run("commit", "--quiet", "--allow-empty", "--message", fmt.Sprint(i))
		commits = append(commits, run("rev-parse", "HEAD"))
	}
	// References at other commits than those whose IDs begin like this.
	run("branch", commits[0][:7], commits[3])
	run("tag", commits[1][:8], commits[4])
	run("tag", "--annotate", "--message=tagged", commits[2][:9], commits[4])
	run("update-ref", "refs/remotes/origin/"+commits[3][:10], commits[0])
	run("update-ref", "refs/heads/"+commits[5], commits[0])
	repository, err := git.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := repository.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, want := range map[string]string{
		commits[0][:7]:         commits[3],
		commits[0][:7] + "~1":  commits[2],
		commits[0][:7] + "^":   commits[2],
		commits[1][:8]:         commits[4],
		commits[2][:9]:         commits[4],
		commits[2][:9] + "~2":  commits[2],
		commits[3][:10]:        commits[0], // a branch of origin without a local copy
		commits[0][:8]:         commits[0],
		commits[4][:12]:        commits[4],
		commits[4][:11] + "~1": commits[3],
		commits[5]:             commits[5], // a full commit ID takes precedence over a branch
		"main":                 commits[5],
		"main~2":               commits[3],
		"HEAD":                 commits[5],
		commits[0][:3]:         "",
		commits[0][:1]:         "",
		"gone":                 "",
	} {
		got, err := repository.Commit(git.ParseRevision(name))
		if want == "" && err == nil || want != "" && got.String() != want {
			t.Errorf("%s is %s (%v), want %q", name, got, err, want)
		}
		// Git searches a name without a reference at origin only as origin/NAME.
		if want != "" && name != commits[3][:10] {
			if found := run("rev-parse", name+"^{commit}"); found != want {
				t.Errorf("git resolves %s to %s, the test expects %s", name, found, want)
			}
		}
	}
}
