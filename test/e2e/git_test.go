package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// gitClient is a user of a repository of the sandbox's Git server.
type gitClient struct {
	shell *shell
	// address is the URL of the repository, and url the URL with the user's credentials.
	address, url string
	// dir is the work tree.
	dir string
	// pushing serializes the pushes of subtests that share the work tree.
	pushing *sync.Mutex
}

// newGit creates a repository.
func newGit(sh *shell, cluster *testcluster.Cluster, name string) *gitClient {
	sh.t.Helper()
	cluster.Sandbox(sh.t, "git", "create", name)
	dir := filepath.Join(sh.t.TempDir(), name)
	address := cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/" + name + ".git"
	g := &gitClient{shell: sh.in(dir), address: address, url: address, dir: dir, pushing: &sync.Mutex{}}
	if cluster.Namespace != "" { // the server of a shared sandbox
		g.url = withCredentials(sh.t, address)
	}
	return g
}

// withCredentials returns a URL with the user and the password of the Git server of a shared sandbox.
func withCredentials(t *testing.T, address string) string {
	t.Helper()
	open, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	open.User = url.UserPassword(testcluster.GitUser, testcluster.GitPassword)
	return open.String()
}

// as returns the client for a subtest.
func (g *gitClient) as(t *testing.T) *gitClient {
	part := *g
	part.shell = g.shell.as(t)
	return &part
}

// run runs git in the work tree.
func (g *gitClient) run(args ...string) string {
	g.shell.t.Helper()
	return g.shell.run("git", args...)
}

// commit writes files ("" removes a file), commits and pushes.
func (g *gitClient) commit(message string, files map[string]string) {
	t := g.shell.t
	t.Helper()
	g.pushing.Lock()
	defer g.pushing.Unlock()
	if _, err := os.Stat(g.dir); err != nil {
		g.shell.in("").run("git", "clone", "--quiet", g.url, g.dir)
	}
	if g.run("ls-remote", "origin") != "" { // an empty repository has nothing to pull
		g.run("pull", "--quiet", "--rebase")
	}
	for name, content := range files {
		if content != "" {
			writeFile(t, g.dir, name, content)
		} else if err := os.Remove(filepath.Join(g.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	g.run("add", "--all")
	g.run("commit", "--quiet", "--message", message)
	g.run("push", "--quiet")
}

// revision returns the revision of the work tree in the format of Flux.
func (g *gitClient) revision() string {
	g.shell.t.Helper()
	return "main@sha1:" + strings.TrimSpace(g.run("rev-parse", "HEAD"))
}

// subjects returns the subjects of the commits on the server, newest first.
func (g *gitClient) subjects() []string {
	g.shell.t.Helper()
	dir := g.shell.t.TempDir()
	g.shell.in("").run("git", "clone", "--quiet", g.url, dir)
	return strings.Split(strings.TrimSpace(g.shell.in(dir).run("git", "log", "--format=%s")), "\n")
}
