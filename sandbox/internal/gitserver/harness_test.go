package gitserver

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
)

// bound limits a test that hangs; no test comes near it.
const bound = time.Minute

// TestMain runs the test binary as the ssh program when Git calls it, so that SSH is tested on machines without ssh.
func TestMain(m *testing.M) {
	if os.Getenv(sshKeyVariable) != "" {
		os.Exit(sshClient(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// host is a running server with its directory.
type host struct {
	Addresses
	root         string
	repositories Repositories
	credentials  credentials.File
	log          *logbook
	stop         func() error // stops Run and returns its error
}

func startHost(t *testing.T, names ...string) *host {
	t.Helper()
	return startHostIn(t, t.TempDir(), names...)
}

func startHostIn(t *testing.T, root string, names ...string) *host {
	t.Helper()
	repositories, err := Open(root)
	check(t, err)
	for _, name := range names {
		_, err := repositories.Create(t.Context(), name, "")
		check(t, err)
	}
	h := &host{root: root, repositories: repositories, credentials: credentials.In(root), log: newLogbook()}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan Addresses, 1), make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{
			Root:     root,
			HTTPAddr: "127.0.0.1:0", HTTPSAddr: "localhost:0", SSHAddr: "127.0.0.1:0",
			Ready: func(a Addresses) { ready <- a },
			Log:   h.log,
		})
	}()
	h.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(bound):
			t.Error("Run does not return after its context is canceled")
			return nil
		}
	})
	select {
	case h.Addresses = <-ready:
	case err := <-done:
		t.Fatalf("Run ended before it was ready: %v", err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if t.Failed() {
			t.Logf("server log:\n%s", h.log.String())
		}
	})
	return h
}

// refs returns the refs of the server's repository.
func (h *host) refs(t *testing.T, name string) string {
	t.Helper()
	refs, err := git(t.Context(), h.repositories.folder(name), "for-each-ref", "--format=%(refname)")
	check(t, err)
	return refs
}

// logbook is a log that tests can wait on.
type logbook struct {
	mutex  sync.Mutex
	text   bytes.Buffer
	change chan struct{}
}

func newLogbook() *logbook { return &logbook{change: make(chan struct{})} }

func (l *logbook) Write(data []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	close(l.change)
	l.change = make(chan struct{})
	return l.text.Write(data)
}

func (l *logbook) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

func (l *logbook) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(bound)
	for {
		l.mutex.Lock()
		found, change := strings.Contains(l.text.String(), text), l.change
		l.mutex.Unlock()
		if found {
			return
		}
		select {
		case <-change:
		case <-deadline:
			t.Fatalf("the log never contained %q:\n%s", text, l.String())
		}
	}
}

// client is a user with a home directory, so that Git does not read the configuration of this machine.
type client struct {
	home string
	env  []string
}

func newClient(t *testing.T, env ...string) *client {
	t.Helper()
	home := t.TempDir()
	return &client{home: home, env: append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
		"LC_ALL=C",
	}, env...)}
}

// git runs Git in the user's home directory and returns its output.
func (c *client) git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = c.home, c.env
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func (c *client) must(t *testing.T, args ...string) string {
	t.Helper()
	output, err := c.git(t, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// worktree creates a repository with one commit on main and returns the name of its directory.
func (c *client) worktree(t *testing.T) string {
	t.Helper()
	c.must(t, "init", "--quiet", "--initial-branch=main", "work")
	check(t, os.WriteFile(filepath.Join(c.home, "work", "README.md"), []byte("hello\n"), 0o600))
	c.must(t, "-C", "work", "add", ".")
	c.must(t, "-C", "work", "commit", "--quiet", "--message=one")
	return "work"
}

// password stores a username and password for Git's credential helper.
func (c *client) password(t *testing.T, base, name, password string) {
	t.Helper()
	scheme, rest, _ := strings.Cut(base, "://")
	line := scheme + "://" + name + ":" + password + "@" + rest + "\n"
	check(t, os.WriteFile(filepath.Join(c.home, ".git-credentials"), []byte(line), 0o600))
	c.setting("credential.helper", "store")
}

// setting sets a Git configuration in the environment, which also keeps secrets out of the arguments.
func (c *client) setting(key, value string) {
	c.env = append(c.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0="+key, "GIT_CONFIG_VALUE_0="+value)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantOutcome checks the result of a Git command: success if want is empty, otherwise a failure whose output contains want.
func wantOutcome(t *testing.T, action, output string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v\n%s", action, err, output)
		}
		return
	}
	if err == nil {
		t.Errorf("%s succeeded, want an error with %q\n%s", action, want, output)
	} else if !strings.Contains(output, want) {
		t.Errorf("%s failed with\n%s\nwant %q in it", action, output, want)
	}
}
