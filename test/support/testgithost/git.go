package testgithost

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Repositories holds bare Git repositories in a directory, by names such as "org/fleet".
type Repositories struct {
	dir, git string
}

// preReceive rejects pushes to the branches that are listed in a file, unless the user can bypass
// the protection. The rest of a line is the message.
const preReceive = `#!/bin/sh
[ -z "$PUSH_BYPASS" ] && [ -e protected ] || exit 0
while read -r old new ref; do
	while read -r branch message; do
		if [ "$ref" = "refs/heads/$branch" ]; then
			echo "$message" >&2
			exit 1
		fi
	done <protected
done
`

func newRepositories(dir string) (*Repositories, error) {
	git, err := exec.LookPath("git")
	return &Repositories{dir: dir, git: git}, err
}

// Path returns the directory of a repository.
func (g *Repositories) Path(repository string) string {
	return filepath.Join(g.dir, filepath.FromSlash(repository)+".git")
}

func (g *Repositories) exists(repository string) bool {
	_, err := os.Stat(filepath.Join(g.Path(repository), "HEAD"))
	return err == nil
}

// Create creates an empty repository with the name of its default branch.
func (g *Repositories) Create(repository, branch string) error {
	path := g.Path(repository)
	if g.exists(repository) {
		return fmt.Errorf("there is a repository %s already", repository)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if _, err := g.run(path, "init", "--quiet", "--bare", "--initial-branch="+branch); err != nil {
		return err
	}
	if _, err := g.run(path, "config", "http.receivepack", "true"); err != nil {
		return err
	}
	hook := filepath.Join(path, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		return err
	}
	return os.WriteFile(hook, []byte(preReceive), 0o700) // a hook must be executable
}

// Remove removes a repository.
func (g *Repositories) Remove(repository string) error { return os.RemoveAll(g.Path(repository)) }

// Protect rejects pushes to a branch with a message.
func (g *Repositories) Protect(repository, branch, message string) error {
	return g.close(repository, map[string]string{branch: message})
}

// Unprotect allows pushes to all branches again.
func (g *Repositories) Unprotect(repository string) error { return g.close(repository, nil) }

// close rejects pushes to exactly these branches, each with its message.
func (g *Repositories) close(repository string, messages map[string]string) error {
	var lines strings.Builder
	for branch, message := range messages {
		fmt.Fprintf(&lines, "%s %s\n", branch, message)
	}
	return os.WriteFile(filepath.Join(g.Path(repository), "protected"), []byte(lines.String()), 0o600)
}

// forward fast-forwards a branch to another one.
func (g *Repositories) forward(repository, branch, to string) error {
	path := g.Path(repository)
	if _, err := g.run(path, "merge-base", "--is-ancestor", "refs/heads/"+branch, "refs/heads/"+to); err != nil {
		return err
	}
	_, err := g.run(path, "update-ref", "refs/heads/"+branch, "refs/heads/"+to)
	return err
}

// Delete deletes a branch.
func (g *Repositories) Delete(repository, branch string) error {
	_, err := g.run(g.Path(repository), "update-ref", "-d", "refs/heads/"+branch)
	return err
}

// adopt makes the first branch the default branch if the default branch does not exist, like
// hosts at the first push.
func (g *Repositories) adopt(repository string) error {
	standard, err := g.Default(repository)
	if err != nil {
		return err
	}
	branches, err := g.Branches(repository)
	if err != nil || len(branches) == 0 || slices.Contains(branches, standard) {
		return err
	}
	return g.SetDefault(repository, branches[0])
}

// Commit adds a commit with files to a branch as another user. A new branch starts at the default
// branch.
func (g *Repositories) Commit(repository, branch, message string, files map[string]string) error {
	work, err := os.MkdirTemp(g.dir, "work-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // the rest is removed with the server
	if _, err := g.run(work, "init", "--quiet", "--initial-branch="+branch); err != nil {
		return err
	}
	for _, from := range []string{branch, "HEAD"} {
		if _, err = g.run(work, "pull", "--quiet", g.Path(repository), from); err == nil {
			break // an empty repository has neither
		}
	}
	for name, content := range files {
		file := filepath.Join(work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"add", "--all"},
		{"-c", "user.name=Other", "-c", "user.email=other@example.com", "commit", "--quiet", "--message", message},
		{"-c", "core.hooksPath=" + os.DevNull, "push", "--quiet", "--receive-pack", "PUSH_BYPASS=1 git receive-pack", g.Path(repository), branch},
	} {
		if _, err := g.run(work, args...); err != nil {
			return err
		}
	}
	return nil
}

// Branches returns the branches of a repository.
func (g *Repositories) Branches(repository string) ([]string, error) {
	out, err := g.run(g.Path(repository), "for-each-ref", "--format=%(refname:short)", "refs/heads")
	return strings.Fields(out), err
}

// Head returns the commit of a branch.
func (g *Repositories) Head(repository, branch string) (string, error) {
	return g.run(g.Path(repository), "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
}

// Default returns the branch of HEAD.
func (g *Repositories) Default(repository string) (string, error) {
	return g.run(g.Path(repository), "symbolic-ref", "--short", "HEAD")
}

// SetDefault sets the branch of HEAD.
func (g *Repositories) SetDefault(repository, branch string) error {
	_, err := g.run(g.Path(repository), "symbolic-ref", "HEAD", "refs/heads/"+branch)
	return err
}

// Log returns author and subject of the commits of a branch, newest first, or nil if the branch
// does not exist.
func (g *Repositories) Log(repository, branch string) ([]string, error) {
	if _, err := g.Head(repository, branch); err != nil {
		return nil, nil // it does not exist
	}
	out, err := g.run(g.Path(repository), "log", "--format=%an <%ae> %s", "refs/heads/"+branch)
	return strings.Split(out, "\n"), err
}

// Clone clones a branch into a directory.
func (g *Repositories) Clone(repository, branch, folder string) error {
	_, err := g.run(g.dir, "clone", "--quiet", "--branch", branch, g.Path(repository), folder)
	return err
}

// serve serves a request of Git.
func (g *Repositories) serve(w http.ResponseWriter, r *http.Request, repository, service string, bypass bool) {
	r = r.Clone(r.Context())
	r.URL.Path = "/" + repository + ".git" + service
	backend := &cgi.Handler{
		Path: g.git, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + g.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + g.dir},
	}
	if bypass {
		backend.Env = append(backend.Env, "PUSH_BYPASS=1")
	}
	backend.ServeHTTP(w, r)
}

// run runs Git without the configuration of the user and the system.
func (g *Repositories) run(folder string, args ...string) (string, error) {
	cmd := exec.Command(g.git, args...)
	cmd.Dir = folder
	cmd.Env = g.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (g *Repositories) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}
}

// describe writes the branches of a repository and their commits.
func (g *Repositories) describe(out *strings.Builder, repository string) error {
	branches, err := g.Branches(repository)
	if err != nil {
		return err
	}
	for _, branch := range branches {
		log, err := g.Log(repository, branch)
		if err != nil {
			return err
		}
		for _, commit := range log {
			fmt.Fprintf(out, "  %s: %s\n", branch, commit)
		}
	}
	return nil
}
