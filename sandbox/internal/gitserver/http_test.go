package gitserver

import (
	"crypto/rand"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
)

func TestHTTPLogins(t *testing.T) {
	t.Parallel()
	const prompts = "could not read Username"
	password := func(name, secret string) func(*testing.T, *client, *host) {
		return func(t *testing.T, c *client, h *host) { c.password(t, h.HTTP, name, secret) }
	}
	bearer := func(token string) func(*testing.T, *client, *host) {
		return func(_ *testing.T, c *client, _ *host) { c.setting("http.extraHeader", "Authorization: Bearer "+token) }
	}
	anonymous := func(*testing.T, *client, *host) {}
	tests := []struct {
		name        string
		configured  bool
		login       func(*testing.T, *client, *host)
		clone, push string // expected in the output of a rejected request
	}{
		{"open server", false, anonymous, "", ""},
		{"no credentials", true, anonymous, prompts, prompts},
		{"right password", true, password("ada", "correct-horse"), "", ""},
		{"wrong password", true, password("ada", "wrong"), "Authentication failed", "Authentication failed"},
		{"password of another user", true, password("ada", "look-only"), "Authentication failed", "Authentication failed"},
		{"unknown user", true, password("eve", "correct-horse"), "Authentication failed", "Authentication failed"},
		{"read-only password", true, password("bob", "look-only"), "", "403"},
		{"right token", true, bearer("token-rw"), "", ""},
		{"wrong token", true, bearer("token-xx"), prompts, prompts},
		{"read-only token", true, bearer("token-ro"), "", "403"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := startHost(t, "demo")
			if test.configured {
				configure(t, h.credentials)
			}
			c := newClient(t)
			test.login(t, c, h)
			output, err := c.git(t, "clone", h.URL("http", "demo"), "clone")
			wantOutcome(t, "clone", output, err, test.clone)
			test.login(t, c, h) // again: Git erases a rejected password
			output, err = c.git(t, "-C", c.worktree(t), "push", h.URL("http", "demo"), "main")
			wantOutcome(t, "push", output, err, test.push)

			want := "refs/heads/main"
			if test.push != "" {
				want = ""
			}
			if got := h.refs(t, "demo"); got != want {
				t.Errorf("the server has refs %q, want %q", got, want)
			}
			for _, secret := range []string{"correct-horse", "look-only", "token-rw", "token-ro"} {
				if strings.Contains(h.log.String(), secret) {
					t.Errorf("the log contains the secret %q", secret)
				}
			}
		})
	}
}

// configure adds ada, who can push, bob, who cannot, and a token of each kind.
func configure(t *testing.T, file credentials.File) {
	t.Helper()
	check(t, file.SetPassword("ada", "correct-horse", false))
	check(t, file.SetPassword("bob", "look-only", true))
	check(t, file.SetToken("token-rw", false))
	check(t, file.SetToken("token-ro", true))
}

func TestHTTPStatus(t *testing.T) {
	t.Parallel()
	h := startHost(t, "demo", "acme/fleet")
	configure(t, h.credentials)
	outside(t, h)

	read, write := "/info/refs?service=git-upload-pack", "/info/refs?service=git-receive-pack"
	tests := []struct {
		name, method, path, user string
		want                     int
	}{
		{"read", "GET", "/demo.git" + read, "bob", 200},
		{"without the suffix", "GET", "/demo" + read, "bob", 200},
		{"nested", "GET", "/acme/fleet.git" + read, "bob", 200},
		{"write", "GET", "/demo.git" + write, "ada", 200},
		{"write of a reader", "GET", "/demo.git" + write, "bob", 403},
		{"pack of a reader", "POST", "/demo.git/git-receive-pack", "bob", 403},
		{"unauthenticated", "GET", "/demo.git" + read, "", 401},
		{"unauthenticated at an unknown repository", "GET", "/nope.git" + read, "", 401},
		{"unknown repository", "GET", "/nope.git" + read, "ada", 404},
		{"organization alone", "GET", "/acme.git" + read, "ada", 404},
		{"dumb protocol", "GET", "/demo.git/info/refs", "ada", 404},
		{"file of a repository", "GET", "/demo.git/HEAD", "ada", 404},
		{"another service", "GET", "/demo.git/info/refs?service=git-upload-archive", "ada", 404},
		{"wrong method", "GET", "/demo.git/git-upload-pack", "ada", 404},
		{"root", "GET", "/", "ada", 404},
		{"credentials file", "GET", "/credentials.json", "ada", 404},
		{"dots", "GET", "/../outside.git" + read, "ada", 404},
		{"dots within", "GET", "/acme/../../outside.git" + read, "ada", 404},
		{"escaped dots", "GET", "/%2e%2e/outside.git" + read, "ada", 404},
		{"escaped slash", "GET", "/..%2foutside.git" + read, "ada", 404},
		{"back slash", "GET", "/..%5coutside.git" + read, "ada", 404},
		{"link to the outside", "GET", "/link.git" + read, "ada", 404},
		{"linked organization", "GET", "/linked/outside.git" + read, "ada", 404},
		{"within a repository", "GET", "/demo.git/hooks.git" + read, "ada", 404},
		{"null byte", "GET", "/demo%00.git" + read, "ada", 404},
		{"option", "GET", "/--help.git" + read, "ada", 404},
	}
	passwords := map[string]string{"ada": "correct-horse", "bob": "look-only"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			target, err := url.Parse(h.HTTP)
			check(t, err)
			target.Opaque = "//" + target.Host + test.path // sent as written, not cleaned
			request := &http.Request{Method: test.method, URL: target, Header: http.Header{}}
			if test.user != "" {
				request.SetBasicAuth(test.user, passwords[test.user])
			}
			response, err := http.DefaultClient.Do(request.WithContext(t.Context()))
			check(t, err)
			check(t, response.Body.Close())
			if response.StatusCode != test.want {
				t.Errorf("status %d, want %d", response.StatusCode, test.want)
			}
			if challenged := response.Header.Get("WWW-Authenticate") != ""; challenged != (test.want == 401) {
				t.Errorf("challenge sent: %v with status %d", challenged, response.StatusCode)
			}
		})
	}
}

// outside creates a repository outside of the root, and a link to it inside.
func outside(t *testing.T, h *host) {
	t.Helper()
	beside, err := Open(filepath.Dir(h.root))
	check(t, err)
	_, err = beside.Create(t.Context(), "outside", "")
	check(t, err)
	check(t, os.Symlink(beside.folder("outside"), h.repositories.folder("link")))
	check(t, os.Symlink(filepath.Dir(h.root), filepath.Join(h.root, "linked")))
}

func TestHTTPUnknownRepository(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	output, err := newClient(t).git(t, "clone", h.URL("http", "nope"))
	wantOutcome(t, "clone", output, err, `remote: repository not found: "nope"`)
}

// Git sends data above http.postBuffer in chunks, without a length.
func TestHTTPLargePush(t *testing.T) {
	t.Parallel()
	h := startHost(t, "demo")
	c := newClient(t)
	work := c.worktree(t)
	noise := make([]byte, 3<<20)
	_, _ = rand.Read(noise)
	check(t, os.WriteFile(filepath.Join(c.home, work, "noise"), noise, 0o600))
	c.must(t, "-C", work, "add", ".")
	c.must(t, "-C", work, "commit", "--quiet", "--message=noise")
	c.must(t, "-C", work, "push", h.URL("http", "demo"), "main")
	c.must(t, "clone", "--quiet", h.URL("http", "demo"), "clone")
	got, err := os.ReadFile(filepath.Join(c.home, "clone", "noise"))
	check(t, err)
	if string(got) != string(noise) {
		t.Error("the clone differs from the pushed content")
	}
}

func TestHTTPSIsVerified(t *testing.T) {
	t.Parallel()
	h := startHost(t, "demo")
	base, err := url.Parse(h.HTTPS)
	check(t, err)
	tests := []struct{ name, host, ca, want string }{
		{"with the CA, by address", "127.0.0.1", h.CAFile, ""},
		{"with the CA, by name", "localhost", h.CAFile, ""},
		{"without the CA", "127.0.0.1", "", "certificate"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			if test.ca != "" {
				c.env = append(c.env, "GIT_SSL_CAINFO="+test.ca)
			}
			remote := "https://" + test.host + ":" + base.Port() + "/demo.git"
			output, err := c.git(t, "ls-remote", remote)
			wantOutcome(t, "ls-remote", output, err, test.want)
			output, err = c.git(t, "-C", c.worktree(t), "push", remote, "HEAD:refs/heads/"+test.host+test.want)
			wantOutcome(t, "push", output, err, test.want)
		})
	}
}

func TestCredentialsChangeWhileRunning(t *testing.T) {
	t.Parallel()
	h := startHost(t, "demo")
	steps := []struct {
		name   string
		change func() error
		want   string
	}{
		{"no credentials", func() error { return nil }, ""},
		{"password set", func() error { return h.credentials.SetPassword("ada", "first", false) }, ""},
		{"password changed", func() error { return h.credentials.SetPassword("ada", "second", false) }, "Authentication failed"},
		{"changed back", func() error { return h.credentials.SetPassword("ada", "first", true) }, ""},
		{"file damaged", func() error { return os.WriteFile(filepath.Join(h.root, "credentials.json"), []byte("{"), 0o600) }, "500"},
		{"file removed", func() error { return os.Remove(filepath.Join(h.root, "credentials.json")) }, ""},
	}
	for _, step := range steps { // each depends on the previous one
		check(t, step.change())
		c := newClient(t)
		c.password(t, h.HTTP, "ada", "first") // again: Git erases a rejected password
		output, err := c.git(t, "ls-remote", h.URL("http", "demo"))
		wantOutcome(t, step.name, output, err, step.want)
	}
}

// A hook runs with the environment of the request, which must not contain a password.
func TestSecretsStayOutOfHooks(t *testing.T) {
	t.Parallel()
	h := startHost(t, "demo")
	configure(t, h.credentials)
	hook := filepath.Join(h.repositories.folder("demo"), "hooks", "post-receive")
	check(t, os.WriteFile(hook, []byte("#!/bin/sh\nenv >environment\n"), 0o700))
	c := newClient(t)
	c.setting("http.extraHeader", "Authorization: Bearer token-rw")
	c.must(t, "-C", c.worktree(t), "push", h.URL("http", "demo"), "main")
	environment, err := os.ReadFile(filepath.Join(h.repositories.folder("demo"), "environment"))
	check(t, err)
	if text := string(environment); !strings.Contains(text, "GIT_DIR=") || strings.Contains(text, "token-rw") {
		t.Errorf("want the environment of a hook without the token, got:\n%s", text)
	}
}

// TestClientGoesAway checks that the process that serves a push exits when the client
// disconnects.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	h := startHost(t, "demo")
	server := &server{repositories: h.repositories, credentials: h.credentials, log: log.New(h.log, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/demo.git/git-receive-pack", io.MultiReader(strings.NewReader("00a5"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		request.ContentLength = 1 << 20
		request.Header.Set("Content-Type", "application/x-git-receive-pack-request")
		server.ServeHTTP(httptest.NewRecorder(), request)
	}()
	select {
	case <-done:
	case <-time.After(bound):
		t.Error("the server still serves a client that has disconnected")
	}
}
