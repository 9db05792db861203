package remote

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// server is a real Git server over HTTP with one repository.
type server struct {
	*httptest.Server
	folder string
	// before is called with each request before Git handles it.
	before atomic.Pointer[func(*http.Request)]
}

const user, password = "ada", "s3cret"

func newServer(t *testing.T) *server {
	t.Helper()
	root := t.TempDir()
	s := &server{folder: filepath.Join(root, "fleet.git")}
	run(t, root, "init", "--quiet", "--bare", "--initial-branch=main", "fleet.git")
	run(t, s.folder, "config", "http.receivepack", "true")
	executable, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: executable, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root},
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if hook := s.before.Load(); hook != nil {
			(*hook)(r)
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) remote() Repository {
	return Repository{URL: s.URL + "/fleet.git", Auth: Basic(user, password)}
}

func (s *server) open(t *testing.T, branch string) *Branch {
	t.Helper()
	r, err := Open(t.Context(), s.remote(), branch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// hook adds a hook to the repository.
func (s *server) hook(t *testing.T, name, script string) {
	t.Helper()
	file := filepath.Join(s.folder, "hooks", name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// log lists the subjects of a branch, newest first.
func (s *server) log(t *testing.T, branch string) []string {
	t.Helper()
	return strings.Split(run(t, s.folder, "log", "--format=%s", branch), "\n")
}

// commitElsewhere adds a commit of another user to a branch.
func (s *server) commitElsewhere(t *testing.T, branch, file, content string) {
	t.Helper()
	work := t.TempDir()
	run(t, work, "clone", "--quiet", s.folder, ".")
	if s.hasCommits(t) {
		run(t, work, "switch", "--quiet", branch)
	} else {
		run(t, work, "switch", "--quiet", "--orphan", branch)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(work, file)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, file), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, work, "add", ".")
	run(t, work, "-c", "user.name=Other", "-c", "user.email=other@example.com", "commit", "--quiet", "-m", "Change "+file)
	run(t, work, "push", "--quiet", "origin", branch)
}

func (s *server) hasCommits(t *testing.T) bool {
	t.Helper()
	return run(t, s.folder, "for-each-ref") != ""
}

// git runs Git without the configuration of the user and the system.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
