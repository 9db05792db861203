package remote

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/git/filetree"
)

func change(message string, files map[string]string) Change {
	c := Change{Message: message, AuthorName: "Flux", When: time.Unix(1793527200, 0).UTC(), Files: map[string][]byte{}}
	for name, content := range files {
		c.Files[name] = []byte(content)
	}
	return c
}

func commit(t *testing.T, r *Branch, c Change) bool {
	t.Helper()
	changed, err := r.Commit(c)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func push(t *testing.T, r *Branch) {
	t.Helper()
	if err := r.Push(t.Context(), unexpected(t)); err != nil {
		t.Fatal(err)
	}
}

func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := s.open(t, "main")
	if !r.Empty() || r.BranchExists() || r.Head() != "" {
		t.Fatalf("the repository is not empty: head %q", r.Head())
	}
	if !commit(t, r, change("First", map[string]string{"a/b/one.yaml": "1\n", "two.yaml": "2\n"})) {
		t.Fatal("nothing was committed")
	}
	commit(t, r, change("Second", map[string]string{"a/b/three.yaml": "3\n"}))
	push(t, r)
	if diff := cmp.Diff([]string{"Second", "First"}, s.log(t, "main")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("a/b/one.yaml\na/b/three.yaml\ntwo.yaml", run(t, s.folder, "ls-tree", "-r", "--name-only", "main")); diff != "" {
		t.Error(diff)
	}
	if got := run(t, s.folder, "log", "-1", "--format=%an <%ae> %cn", "main"); got != "Flux <> Flux" {
		t.Errorf("the author is %q", got)
	}
	run(t, s.folder, "fsck", "--strict")
}

func TestNoChangeMakesNoCommit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.commitElsewhere(t, "main", "a/one.yaml", "1\n")
	r := s.open(t, "main")
	if commit(t, r, change("Again", map[string]string{"a/one.yaml": "1\n"})) {
		t.Error("commit without a change")
	}
	push(t, r)
	if diff := cmp.Diff([]string{"Change a/one.yaml"}, s.log(t, "main")); diff != "" {
		t.Error(diff)
	}
}

func TestKeepsOtherFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.commitElsewhere(t, "main", "apps/web.yaml", "web\n")
	s.commitElsewhere(t, "main", "apps-more/x.yaml", "x\n")
	r := s.open(t, "main")
	commit(t, r, change("More", map[string]string{"apps/db.yaml": "db\n", "apps.yaml": "sorts between the folders\n"}))
	push(t, r)
	run(t, s.folder, "fsck", "--strict")
	if diff := cmp.Diff("apps-more/x.yaml\napps.yaml\napps/db.yaml\napps/web.yaml", run(t, s.folder, "ls-tree", "-r", "--name-only", "main")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"More", "Change apps-more/x.yaml", "Change apps/web.yaml"}, s.log(t, "main")); diff != "" {
		t.Error(diff)
	}
}

func TestRemovesFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, name := range []string{"a/b/c.yaml", "a/keep.yaml", "d.yaml"} {
		s.commitElsewhere(t, "main", name, "x\n")
	}
	r := s.open(t, "main")
	c := change("Remove", map[string]string{"empty.yaml": ""})
	c.Removed = []string{"a/b/c.yaml", "d.yaml"}
	commit(t, r, c)
	push(t, r)
	run(t, s.folder, "fsck", "--strict")
	if diff := cmp.Diff("a\na/keep.yaml\nempty.yaml", run(t, s.folder, "ls-tree", "-r", "-t", "--name-only", "main")); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"d.yaml", "a/b/c.yaml", "a"} {
		if _, err := r.Commit(Change{Message: "Remove", Removed: []string{name}}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removing %s: %v", name, err)
		}
	}
}

func TestNewBranchStartsAtTheDefaultBranch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.commitElsewhere(t, "main", "one.yaml", "1\n")
	r := s.open(t, "staging")
	if r.BranchExists() || r.Empty() {
		t.Fatal("the branch exists")
	}
	if commit(t, r, change("Nothing new", map[string]string{"one.yaml": "1\n"})) {
		t.Fatal("commit without a change")
	}
	push(t, r) // creates the branch without a new commit
	if got, want := run(t, s.folder, "rev-parse", "staging"), run(t, s.folder, "rev-parse", "main"); got != want {
		t.Errorf("staging is at %s and main at %s", got, want)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.commitElsewhere(t, "main", "a/one.yaml", "1\n")
	r := s.open(t, "main")
	files, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(files, "a/one.yaml"); err != nil || string(data) != "1\n" {
		t.Errorf("read %q, %v", data, err)
	}
	for _, missing := range []string{"a/two.yaml", "b/one.yaml"} {
		if _, err := fs.ReadFile(files, missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	commit(t, r, change("More", map[string]string{"b.yaml": "2\n"}))
	if files, err = r.Files(); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "a/one.yaml", "b.yaml"); err != nil {
		t.Error(err)
	}
}

func TestPathConflict(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.commitElsewhere(t, "main", "clusters", "a file\n")
	s.commitElsewhere(t, "main", "folder/x", "x\n")
	r := s.open(t, "main")
	for name, want := range map[string]string{
		"clusters/demo/a.yaml": `"clusters" in the repository is a file, not a directory`,
		"folder":               `"folder" in the repository is a directory, not a file`,
	} {
		_, err := r.Commit(change("No", map[string]string{name: "x"}))
		var conflict *filetree.ConflictError
		if !errors.As(err, &conflict) || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConcurrentPush lets another push come before the references are read, or between reading and
// pushing.
func TestConcurrentPush(t *testing.T) {
	t.Parallel()
	for name, suffix := range map[string]string{"before": "info/refs", "between": "git-receive-pack"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.commitElsewhere(t, "main", "one.yaml", "1\n")
			r := s.open(t, "main")
			mine := change("Mine", map[string]string{"a/mine.yaml": "mine\n"})
			commit(t, r, mine)
			hook := func(req *http.Request) {
				if strings.HasSuffix(req.URL.Path, suffix) {
					s.before.Store(nil)
					s.commitElsewhere(t, "main", "theirs.yaml", "theirs\n")
				}
			}
			s.before.Store(&hook)
			if err := r.Push(t.Context(), unexpected(t)); !errors.Is(err, ErrNonFastForward) {
				t.Fatalf("pushing over another push: %v", err)
			}
			if err := r.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !commit(t, r, mine) {
				t.Fatal("the commit was not made again")
			}
			push(t, r)
			if diff := cmp.Diff([]string{"Mine", "Change theirs.yaml", "Change one.yaml"}, s.log(t, "main")); diff != "" {
				t.Error(diff)
			}
			run(t, s.folder, "fsck", "--strict")
		})
	}
}

func TestRejectedByHook(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.hook(t, "pre-receive", "echo 'main is protected' >&2; exit 1")
	r := s.open(t, "main")
	commit(t, r, change("Mine", map[string]string{"a.yaml": "a\n"}))
	err := r.Push(t.Context(), unexpected(t))
	var failed *Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "rejected the push") || !strings.Contains(err.Error(), "main is protected") || failed.Hint == "" {
		t.Fatalf("a push that a hook rejects: %v", err)
	}
	if s.hasCommits(t) {
		t.Error("the server has the commit")
	}
}

func TestClearErrors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	wrong := s.remote()
	wrong.Auth = Basic(user, "wr0ng")
	missing := s.remote()
	missing.URL = s.URL + "/nope.git"
	gone := s.remote()
	gone.URL = "http://127.0.0.1:1/fleet.git"
	for name, test := range map[string]struct {
		remote Repository
		want   string
	}{
		"wrong password":     {wrong, "cloning " + wrong.URL + ": the server rejected the credentials (401)"},
		"missing repository": {missing, "cloning " + missing.URL + ": repository not found, or no permission to read it"},
		"no listener":        {gone, "cloning " + gone.URL + ": cannot reach 127.0.0.1:1: connect: connection refused"},
	} {
		_, err := Open(t.Context(), test.remote, "main")
		var failed *Error
		if !errors.As(err, &failed) || err.Error() != test.want || failed.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := s.open(t, "main")
	c := change("Signed", map[string]string{"a.yaml": "a\n"})
	var signed string
	c.Sign = func(text []byte) (string, error) {
		signed = string(text)
		return "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n", nil
	}
	commit(t, r, c)
	push(t, r)
	raw := run(t, s.folder, "cat-file", "commit", "main")
	if !strings.Contains(raw, "gpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----\n") {
		t.Errorf("the commit has no signature:\n%s", raw)
	}
	if !strings.HasPrefix(signed, "tree ") || !strings.HasSuffix(signed, "\n\nSigned") {
		t.Errorf("the signed text is not a commit:\n%s", signed)
	}
	run(t, s.folder, "fsck", "--strict")
}
