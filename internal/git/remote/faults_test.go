package remote

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/test/support/testgit"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testproxy"
)

// overSSH returns a remote of the repository behind a server with faults.
func overSSH(t *testing.T, s *server, fault func(testgit.Point) testgit.Fault) Repository {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	front := testgit.StartSSH(t, filepath.Dir(s.folder), fault)
	keys := func() ([]ssh.Signer, error) { return []ssh.Signer{signer}, nil }
	return Repository{URL: front.URL + "/fleet.git", Auth: SSH("git", keys, front.HostKey)}
}

// afterStall returns a context that expires two seconds after the call of stalled.
func afterStall(t *testing.T) (ctx context.Context, stalled func()) {
	t.Helper()
	deadline := testlimit.NewDeadline(t.Context(), errors.New("timed out after 2s"))
	return deadline, func() { time.AfterFunc(2*time.Second, deadline.Expire) }
}

// openAndPush clones the branch and pushes a commit.
func openAndPush(ctx context.Context, t *testing.T, remote Repository) error {
	t.Helper()
	r, err := Open(ctx, remote, "main")
	if err != nil {
		return err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	commit(t, r, change("Mine", map[string]string{"a.yaml": "a\n"}))
	return r.Push(ctx, unexpected(t))
}

// fails checks that an error has a part of a message, the address and a remedy, that
// nothing was pushed, and that it is transient or not.
func fails(t *testing.T, s *server, err error, want string, transient bool) {
	t.Helper()
	var failed *Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) || failed.Hint == "" || failed.Transient != transient || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %q, transient %t", err, want, transient)
	}
	if got := s.log(t, "main"); len(got) != 1 {
		t.Errorf("the server has %q", got)
	}
}

// TestSSHFaults injects each fault into each stage of each Git command over SSH.
func TestSSHFaults(t *testing.T) {
	t.Parallel()
	const upload, receive = "git-upload-pack", "git-receive-pack"
	const closed, notGit = "the server closed the connection: ", "the response is not from a Git server"
	const mayHave = "timed out after 2s: the push may have succeeded"
	for point, wants := range map[testgit.Point]map[testgit.Fault]string{
		{Stage: testgit.Connect}:                      {testgit.Drop: closed, testgit.Stall: "timed out after 2s"},
		{Stage: testgit.Authenticate}:                 {testgit.Stall: "timed out after 2s"},
		{Service: upload, Stage: testgit.Command}:     {testgit.Drop: closed, testgit.Stall: "timed out after 2s"},
		{Service: upload, Stage: testgit.References}:  {testgit.Drop: closed, testgit.Stall: "timed out after 2s", testgit.Fail: "the Git command failed on the server: fatal: out of disk space", testgit.Garbage: notGit},
		{Service: upload, Stage: testgit.Transfer}:    {testgit.Drop: closed, testgit.Stall: "timed out after 2s", testgit.Fail: "the Git command failed on the server: fatal: out of disk space", testgit.Garbage: "the server sent in"},
		{Service: receive, Stage: testgit.Command}:    {testgit.Drop: closed, testgit.Stall: "timed out after 2s"},
		{Service: receive, Stage: testgit.References}: {testgit.Drop: closed, testgit.Stall: "timed out after 2s", testgit.Fail: "the Git command failed on the server: fatal: out of disk space", testgit.Garbage: notGit},
		{Service: receive, Stage: testgit.Transfer}:   {testgit.Drop: "connection lost before the server confirmed the push (", testgit.Stall: mayHave, testgit.Fail: "(fatal: out of disk space): branch \"main\" does not contain the commits"},
	} {
		for fault, want := range wants {
			t.Run(fmt.Sprintf("%s %s %d", point.Service, point.Stage, fault), func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				s.commitElsewhere(t, "main", "one.yaml", strings.Repeat("1\n", 10000))
				ctx, stalled := t.Context(), func() {}
				if fault == testgit.Stall {
					ctx, stalled = afterStall(t)
				}
				remote := overSSH(t, s, func(p testgit.Point) testgit.Fault {
					if p == point {
						stalled()
						return fault
					}
					return testgit.None
				})
				fails(t, s, openAndPush(ctx, t, remote), want, want != notGit)
			})
		}
	}
}

// TestSSH checks that a repository over SSH is cloned and pushed to, an empty one too, and a
// missing one is reported.
func TestSSH(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	remote := overSSH(t, s, func(testgit.Point) testgit.Fault { return testgit.None })
	for n, name := range []string{"One", "Two"} {
		r, err := Open(t.Context(), remote, "main")
		if err != nil {
			t.Fatal(err)
		}
		commit(t, r, change(name, map[string]string{name + ".yaml": name}))
		if err := errors.Join(r.CheckPush(t.Context()), r.Push(t.Context(), unexpected(t)), r.Close()); err != nil {
			t.Fatal(err)
		}
		if got := len(s.log(t, "main")); got != n+1 {
			t.Errorf("%d commits", got)
		}
	}
	missing := remote
	missing.URL = strings.Replace(remote.URL, "fleet", "it's", 1)
	_, err := Open(t.Context(), missing, "main")
	if err == nil || !strings.Contains(err.Error(), "repository not found, or no permission to read it") {
		t.Error(err)
	}
	s.hook(t, "pre-receive", "echo 'main is protected' >&2; exit 1")
	if err := openAndPush(t.Context(), t, remote); err == nil || !strings.Contains(err.Error(), "the server rejected the push: ") || !strings.Contains(err.Error(), "main is protected") {
		t.Error(err)
	}
}

// TestHTTPFaults injects each fault into each request over HTTP.
func TestHTTPFaults(t *testing.T) {
	t.Parallel()
	const closed = "the server closed the connection: "
	faults := map[string]func(w http.ResponseWriter, r *http.Request){
		"503": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>\nService Unavailable</html>", http.StatusServiceUnavailable)
		},
		"429":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "slow down", http.StatusTooManyRequests) },
		"dropped": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			text := "001e# service=git-upload-pack\n0000"
			if r.Method == http.MethodPost {
				text = "0008NAK\n0100\x01PACK"
			}
			_, _ = io.WriteString(w, text) // the client may have gone
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"stalls": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"page":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>\nWelcome</html>") },
	}
	for at, wants := range map[string]map[string]string{
		"/info/refs?service=git-upload-pack":  {"503": "the server failed: 503 Service Unavailable", "429": "the server failed: 429 Too Many Requests", "dropped": closed, "cut": closed, "stalls": "timed out after 2s", "page": "-the response is not from a Git server"},
		"/git-upload-pack":                    {"503": "the server failed: 503 Service Unavailable", "429": "the server failed: 429 Too Many Requests", "dropped": closed, "cut": closed, "stalls": "timed out after 2s", "page": "-"},
		"/info/refs?service=git-receive-pack": {"503": "the server failed: 503 Service Unavailable", "429": "the server failed: 429 Too Many Requests", "dropped": closed, "cut": closed, "stalls": "timed out after 2s", "page": "-the response is not from a Git server"},
		"/git-receive-pack": {
			"503": `the server failed before it confirmed the push (503 Service Unavailable): branch "main" does not contain the commits`, "429": "the server failed: 429 Too Many Requests",
			"dropped": "connection lost before the server confirmed the push (", "cut": `branch "main" does not contain the commits`, "stalls": "timed out after 2s: the push may have succeeded",
			"page": `branch "main" does not contain the commits`,
		},
	} {
		for how, want := range wants {
			t.Run(at+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				s.commitElsewhere(t, "main", "one.yaml", "1\n")
				ctx, stalled := t.Context(), func() {}
				if how == "stalls" {
					ctx, stalled = afterStall(t)
				}
				remote := behind(t, s, func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.RequestURI(), at) {
						return false
					}
					if how == "stalls" {
						_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed after the body only
						stalled()
					}
					faults[how](w, r)
					return true
				})
				permanent, isPermanent := strings.CutPrefix(want, "-")
				fails(t, s, openAndPush(ctx, t, remote), permanent, !isPermanent)
			})
		}
	}
}

// behind returns a remote of the repository behind a server that may respond itself.
func behind(t *testing.T, s *server, answers func(http.ResponseWriter, *http.Request) bool) Repository {
	t.Helper()
	reverse, err := testproxy.Reverse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers(w, r) {
			reverse.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	remote := s.remote()
	remote.URL = front.URL + "/fleet.git"
	return remote
}

// TestLimits checks that reading from a server that sends without end stops at a limit that the
// error names.
func TestLimits(t *testing.T) {
	t.Parallel()
	few := &limits{references: 1 << 20, pack: 2 << 20, report: 3 << 20, message: 1000}
	for at, want := range map[string]string{
		"/info/refs?service=git-upload-pack":  "the server sent references larger than 1 MiB",
		"/info/refs?service=git-receive-pack": "the server sent references larger than 1 MiB",
		"/git-upload-pack":                    "the server sent objects larger than 2 MiB",
		"/git-receive-pack":                   "connection lost before the server confirmed the push (the server sent push messages larger than 3 MiB)",
	} {
		for _, transport := range []string{"HTTP", "SSH"} {
			t.Run(transport+" "+at, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				s.commitElsewhere(t, "main", "one.yaml", "1\n")
				var remote Repository
				if transport == "SSH" {
					service := at[strings.LastIndex(at, "git-"):]
					stage := testgit.Transfer
					if strings.Contains(at, "refs") {
						stage = testgit.References
					}
					remote = overSSH(t, s, func(p testgit.Point) testgit.Fault {
						if p == (testgit.Point{Service: service, Stage: stage}) {
							return testgit.Endless
						}
						return testgit.None
					})
				} else {
					remote = behind(t, s, func(w http.ResponseWriter, r *http.Request) bool {
						if !strings.HasSuffix(r.URL.RequestURI(), at) {
							return false
						}
						endless(w, r)
						return true
					})
				}
				remote.limits = few
				fails(t, s, openAndPush(t.Context(), t, remote), want, strings.HasPrefix(want, "connection"))
			})
		}
	}
	t.Run("error page", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		s.commitElsewhere(t, "main", "one.yaml", "1\n")
		remote := behind(t, s, func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			endless(w, r)
			return true
		})
		remote.limits = few
		fails(t, s, openAndPush(t.Context(), t, remote), "the server failed: 502 Bad Gateway", true)
	})
}

// endless sends references or progress messages until the client has gone.
func endless(w http.ResponseWriter, r *http.Request) {
	line := strings.Repeat("1", 40) + " refs/heads/branch-%09d\x00report-status\n"
	if r.Method == http.MethodPost {
		line = "\x02remote: %09d\n"
	} else {
		_, _ = fmt.Fprintf(w, "%04x# service=%s\n0000", len(r.URL.RawQuery)+7, strings.TrimPrefix(r.URL.RawQuery, "service="))
	}
	for n := 0; ; n++ {
		text := fmt.Sprintf(line, n)
		if _, err := fmt.Fprintf(w, "%04x%s", len(text)+4, text); err != nil {
			return
		}
	}
}

// TestNoFolderLeft checks that a clone that fails leaves no temporary folder.
func TestNoFolderLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := newServer(t)
	s.commitElsewhere(t, "main", "one.yaml", strings.Repeat("1\n", 10000))
	drop := func(p testgit.Point) testgit.Fault {
		if p.Stage == testgit.Transfer {
			return testgit.Drop
		}
		return testgit.None
	}
	if _, err := Open(t.Context(), overSSH(t, s, drop), "main"); err == nil {
		t.Error("no error of Open")
	}
	front := testgit.StartSSH(t, filepath.Dir(s.folder), drop)
	pair, err := sshkey.Generate(sshkey.Kind{Algorithm: "ed25519"})
	if err != nil {
		t.Fatal(err)
	}
	host := sshkey.HostKey{PublicKey: front.HostKey, Address: sshkey.Address(strings.TrimPrefix(front.URL, "ssh://git@"))}
	source := Source{URL: front.URL + "/fleet.git", Secret: map[string][]byte{"identity": pair.Private, "known_hosts": []byte(host.Line())}}
	var lost *lostError
	if _, err := source.Fetch(t.Context(), git.Revision{Name: "main"}); !errors.As(err, &lost) {
		t.Errorf("the error of Fetch is %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		for _, entry := range left {
			if folderName().MatchString(entry.Name()) {
				t.Errorf("left %s, %v", entry.Name(), err)
			}
		}
	}
}
