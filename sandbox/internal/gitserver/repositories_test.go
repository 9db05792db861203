package gitserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	r, err := Open(filepath.Join(t.TempDir(), "made", "on", "demand"))
	check(t, err)
	steps := []struct {
		name, branch string
		created      bool
		head         string
	}{
		{"demo", "", true, "main"},
		{"demo", "", false, "main"},
		{"demo.git", "trunk", false, "trunk"}, // still empty
		{"demo", "", false, "trunk"},
		{"acme/fleet", "production", true, "production"},
	}
	for _, step := range steps {
		created, err := r.Create(t.Context(), step.name, step.branch)
		check(t, err)
		name, _, err := r.Find(step.name)
		check(t, err)
		described, err := r.describe(t.Context(), name)
		check(t, err)
		if created != step.created || described.Branch != step.head {
			t.Errorf("Create(%q, %q) = %v with HEAD %s, want %v with HEAD %s",
				step.name, step.branch, created, described.Branch, step.created, step.head)
		}
	}
	list, err := r.List(t.Context())
	check(t, err)
	want := []Repository{{Name: "acme/fleet", Branch: "production", Empty: true}, {Name: "demo", Branch: "trunk", Empty: true}}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("List = %+v, want %+v", list, want)
	}
}

func TestCreateKeepsTheBranchOfCommits(t *testing.T) {
	t.Parallel()
	h, c := startHost(t, "demo"), newClient(t)
	c.must(t, "-C", c.worktree(t), "push", h.URL("http", "demo"), "main")
	_, err := h.repositories.Create(t.Context(), "demo", "trunk")
	check(t, err)
	list, err := h.repositories.List(t.Context())
	check(t, err)
	if want := []Repository{{Name: "demo", Branch: "main"}}; !reflect.DeepEqual(list, want) {
		t.Errorf("List = %+v, want %+v", list, want)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	const badName = `invalid repository name %q: must consist of letters, digits, '.', '_' and '-', as in demo or org/demo`
	const badBranch = `invalid branch name %q: must be a name such as main or release/1.x`
	tests := []struct{ name, branch, want string }{
		{"", "", fmt.Sprintf(badName, "")},
		{"../demo", "", fmt.Sprintf(badName, "../demo")},
		{"a//b", "", fmt.Sprintf(badName, "a//b")},
		{".hidden", "", fmt.Sprintf(badName, ".hidden")},
		{"-option", "", fmt.Sprintf(badName, "-option")},
		{"demo.git/inner", "", fmt.Sprintf(badName, "demo.git/inner")},
		{"with space", "", fmt.Sprintf(badName, "with space")},
		{"demo", "two..dots", fmt.Sprintf(badBranch, "two..dots")},
		{"demo", "-b", fmt.Sprintf(badBranch, "-b")},
		{"demo", "a*", fmt.Sprintf(badBranch, "a*")},
	}
	for _, test := range tests {
		t.Run(test.name+" "+test.branch, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			r, err := Open(root)
			check(t, err)
			_, err = r.Create(t.Context(), test.name, test.branch)
			if got := fmt.Sprint(err); got != test.want {
				t.Errorf("Create: %s\nwant: %s", got, test.want)
			}
			entries, err := os.ReadDir(root)
			check(t, err)
			if len(entries) > 0 {
				t.Errorf("files remain: %v", entries)
			}
		})
	}
}

func TestConcurrentCreate(t *testing.T) {
	t.Parallel()
	r, err := Open(t.TempDir())
	check(t, err)
	var creators sync.WaitGroup
	outcomes := make([]bool, 8)
	for i := range outcomes {
		creators.Go(func() {
			created, err := r.Create(t.Context(), "demo", "")
			if err != nil {
				t.Error(err)
			}
			outcomes[i] = created
		})
	}
	creators.Wait()
	if created := strings.Count(fmt.Sprint(outcomes), "true"); created != 1 {
		t.Errorf("%d of the calls report that they created it, want 1", created)
	}
}

func TestProtectedBranches(t *testing.T) {
	t.Parallel()
	const refused = "is protected: pushes to it are rejected"
	tests := []struct {
		name      string
		protected []string
		push      []string
		want      string
		refs      string
	}{
		{"none", nil, []string{"main"}, "", "refs/heads/main"},
		{"the same branch", []string{"main"}, []string{"main"}, `remote: error: branch "main" ` + refused, ""},
		{"another", []string{"main"}, []string{"main:dev"}, "", "refs/heads/dev"},
		{"others are accepted", []string{"main"}, []string{"main", "main:dev"}, `branch "main" ` + refused, "refs/heads/dev"},
		{"atomic", []string{"main"}, []string{"--atomic", "main", "main:dev"}, `branch "main" ` + refused, ""},
		{"pattern", []string{"release/*"}, []string{"main:release/1.x"}, `branch "release/1.x" ` + refused, ""},
		{"no match of the pattern", []string{"release/*"}, []string{"main:releases"}, "", "refs/heads/releases"},
		{"tag of that name", []string{"main"}, []string{"main:refs/tags/main"}, "", "refs/tags/main"},
		{"second of two", []string{"prod", "main"}, []string{"main"}, `branch "main" ` + refused, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, c := startHost(t, "demo"), newClient(t)
			_, err := h.repositories.Protect(t.Context(), "demo", test.protected...)
			check(t, err)
			arguments := []string{"-C", c.worktree(t), "push"}
			refspecs := test.push
			if refspecs[0] == "--atomic" {
				arguments, refspecs = append(arguments, "--atomic"), refspecs[1:]
			}
			arguments = append(append(arguments, h.URL("http", "demo")), refspecs...)
			output, err := c.git(t, arguments...)
			wantOutcome(t, "push", output, err, test.want)
			if got := h.refs(t, "demo"); got != test.refs {
				t.Errorf("the server has refs %q, want %q", got, test.refs)
			}
		})
	}
}

func TestProtectAndUnprotectOverSSH(t *testing.T) {
	t.Parallel()
	h, mine := startHost(t, "demo"), newSSHKey(t)
	c := newClient(t, sshPrograms(t)["stand-in"](mine.file, knownHosts(t, h))...)
	work := c.worktree(t)
	push := func() (string, error) { return c.git(t, "-C", work, "push", h.URL("ssh", "demo"), "main") }

	changed, err := h.repositories.Protect(t.Context(), "demo", "main", "main", "dev")
	check(t, err)
	if want := []string{"main", "dev"}; !reflect.DeepEqual(changed, want) {
		t.Errorf("Protect changed %q, want %q", changed, want)
	}
	output, err := push()
	wantOutcome(t, "push", output, err, "is protected")
	changed, err = h.repositories.Unprotect(t.Context(), "demo", "main", "other")
	check(t, err)
	if want := []string{"main"}; !reflect.DeepEqual(changed, want) {
		t.Errorf("Unprotect changed %q, want %q", changed, want)
	}
	output, err = push()
	wantOutcome(t, "push", output, err, "")

	c.must(t, "-C", work, "push", h.URL("ssh", "demo"), "main:other")
	_, err = h.repositories.Protect(t.Context(), "demo", "other")
	check(t, err)
	output, err = c.git(t, "-C", work, "push", "--delete", h.URL("ssh", "demo"), "other")
	wantOutcome(t, "delete", output, err, "is protected")
}

// A repository can be moved to another directory or machine, because its hook has no external
// dependencies.
func TestProtectionMovesWithTheRepository(t *testing.T) {
	t.Parallel()
	r, err := Open(t.TempDir())
	check(t, err)
	_, err = r.Create(t.Context(), "demo", "")
	check(t, err)
	_, err = r.Protect(t.Context(), "demo", "main")
	check(t, err)
	moved := filepath.Join(t.TempDir(), "elsewhere.git")
	check(t, os.Rename(r.folder("demo"), moved))
	c := newClient(t)
	output, err := c.git(t, "-C", c.worktree(t), "push", moved, "main")
	wantOutcome(t, "push", output, err, `branch "main" is protected`)
}

func TestProtectRefuses(t *testing.T) {
	t.Parallel()
	r, err := Open(t.TempDir())
	check(t, err)
	_, err = r.Create(t.Context(), "demo", "")
	check(t, err)
	if _, err := r.Protect(t.Context(), "nope", "main"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Protect of an unknown repository: %v, want ErrNotFound", err)
	}
	want := `invalid branch name "ma in": must be a name such as main or release/1.x`
	if _, err := r.Protect(t.Context(), "demo", "dev", "ma in"); fmt.Sprint(err) != want {
		t.Errorf("Protect: %v, want %s", err, want)
	}
	if protected, err := readProtected(r.folder("demo")); err != nil || len(protected) > 0 {
		t.Errorf("after a refused Protect: %q, %v, want nothing changed", protected, err)
	}
}
