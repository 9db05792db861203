package testgithost

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plain is a host without an API: ada may write, bob read.
type plain struct{ s *Server }

func (p plain) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.s.unknownCall(w, r) }

func (p plain) GitAccess(username, secret, _ string) Access {
	known := secret == "s3cret"
	return Access{Known: known, Read: known && username != "eve", Write: username == "ada", Bypass: false}
}

func open(t *testing.T) *Server {
	t.Helper()
	s, err := Open(func(s *Server) API { return plain{s} })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestGit(t *testing.T) {
	t.Parallel()
	s := open(t)
	defer func() { check(t, s.Close()) }()
	check(t, s.Git.Create("org/fleet", "trunk"))
	if s.Git.Create("org/fleet", "trunk") == nil {
		t.Error("a repository was created twice")
	}
	check(t, s.Git.Commit("org/fleet", "trunk", "One", map[string]string{"a/b.txt": "b\n"}))
	check(t, s.Git.Commit("org/fleet", "other", "Two", map[string]string{"c.txt": "c\n"}))
	check(t, s.Git.Commit("org/fleet", "other", "Three", map[string]string{"c.txt": "d\n"}))
	log, err := s.Git.Log("org/fleet", "other")
	check(t, err)
	if diff := cmp.Diff([]string{"Other <other@example.com> Three", "Other <other@example.com> Two", "Other <other@example.com> One"}, log); diff != "" {
		t.Error(diff)
	}
	if standard, err := s.Git.Default("org/fleet"); standard != "trunk" {
		t.Errorf("the default branch is %q, %v", standard, err)
	}
}

// push pushes a commit as a user and returns the output of Git.
func push(t *testing.T, s *Server, user, branch string) string {
	t.Helper()
	work := filepath.Join(t.TempDir(), "work")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	check(t, os.WriteFile(ca, s.CA, 0o600))
	remote := "https://" + user + ":s3cret@" + s.Hostname + "/org/fleet"
	for _, args := range [][]string{
		{"clone", "--quiet", remote, work},
		{"-C", work, "-c", "user.name=U", "-c", "user.email=u@example.com", "commit", "--quiet", "--allow-empty", "-m", "By " + user},
		{"-C", work, "push", "--quiet", "origin", "HEAD:" + branch},
	} {
		if out, err := s.Git.run(t.TempDir(), append([]string{"-c", "http.sslCAInfo=" + ca}, args...)...); err != nil {
			return out
		}
	}
	return ""
}

func TestAccess(t *testing.T) {
	t.Parallel()
	s := open(t)
	defer func() { check(t, s.Close()) }()
	check(t, s.Git.Create("org/fleet", "main"))
	check(t, s.Git.Commit("org/fleet", "main", "One", map[string]string{"a": "b"}))
	check(t, s.Git.Protect("org/fleet", "main", "the branch main is closed"))
	for _, test := range []struct{ user, branch, want string }{
		{"eve", "side", "not found"},
		{"bob", "side", "403"},
		{"ada", "side", ""},
		{"ada", "main", "the branch main is closed"},
	} {
		if got := push(t, s, test.user, test.branch); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("a push by %s to %s: %q", test.user, test.branch, got)
		}
	}
	check(t, s.Git.Unprotect("org/fleet"))
	if got := push(t, s, "ada", "main"); got != "" {
		t.Errorf("a push to an unprotected branch: %s", got)
	}
	if diff := cmp.Diff([]string{"POST /org/fleet/git-receive-pack", "POST /org/fleet/git-receive-pack", "POST /org/fleet/git-receive-pack"}, s.Changes()); diff != "" {
		t.Error(diff)
	}
}

// TestFault closes connections before or after a request was handled, and requires
// that Close reports requests that the API does not implement.
func TestFault(t *testing.T) {
	t.Parallel()
	s := open(t)
	var seen []string
	s.Inject(func(r Request, done bool) bool {
		seen = append(seen, r.String())
		return done
	})
	client := s.http.Client()
	if answer, err := client.Get(s.http.URL + "/api"); err == nil {
		_ = answer.Body.Close()
		t.Error("the connection was not closed")
	}
	s.Inject(nil)
	answer, err := client.Post(s.http.URL+"/api", "text/plain", strings.NewReader("x"))
	check(t, err)
	body, err := io.ReadAll(answer.Body)
	check(t, err)
	check(t, answer.Body.Close())
	if answer.StatusCode != http.StatusNotImplemented || !strings.Contains(string(body), "does not implement") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "implement GET /api") || !strings.Contains(err.Error(), "POST /api") {
		t.Errorf("unknown calls: %v", err)
	}
	if len(seen) < 2 || seen[0] != "GET /api 0" || seen[1] != "GET /api 501" {
		t.Errorf("the fault saw %v", seen)
	}
}
