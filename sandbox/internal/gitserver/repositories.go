package gitserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxkit/flux/sandbox/internal/process"
)

// ErrNotFound is returned when a repository does not exist or its name is invalid.
var ErrNotFound = errors.New("repository not found")

// segment excludes leading dots (".." and hidden directories) and leading dashes (options).
var segment = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// Repositories is the directory of bare repositories of a server. It works with and without a running server.
type Repositories struct{ root string }

// Repository is a listed repository.
type Repository struct {
	Name              string   `json:"name"`
	Branch            string   `json:"branch"`
	Empty             bool     `json:"empty"`
	ProtectedBranches []string `json:"protectedBranches,omitempty"`
}

// Open returns the directory of repositories, which does not have to exist.
func Open(root string) (Repositories, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return Repositories{}, fmt.Errorf("locating the git server's directory: %w", err)
	}
	return Repositories{root: absolute}, nil
}

// canonical returns the name of a repository without leading slash and ".git" suffix.
func canonical(written string) (string, error) {
	name := strings.TrimSuffix(strings.Trim(written, "/"), ".git")
	parts := strings.Split(name, "/")
	for _, part := range parts {
		// An inner directory x.git would put one repository inside another.
		if !segment.MatchString(part) || strings.HasSuffix(part, ".git") {
			return "", fmt.Errorf("invalid repository name %q: must consist of letters, digits, '.', '_' and '-', as in demo or org/demo", written)
		}
	}
	return name, nil
}

func (r Repositories) folder(name string) string {
	return filepath.Join(r.root, filepath.FromSlash(name)+".git")
}

// Find returns the canonical name and the directory of a repository. It uses os.Root, which does not follow symbolic
// links out of the directory.
func (r Repositories) Find(written string) (name, folder string, err error) {
	name, err = canonical(written)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	root, err := os.OpenRoot(r.root)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	if err != nil {
		return "", "", fmt.Errorf("opening the git server's directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat(filepath.FromSlash(name) + ".git/HEAD"); err != nil || !info.Mode().IsRegular() {
		return "", "", fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return name, r.folder(name), nil
}

// Create creates a bare repository with the default branch (main if empty) and reports whether it is new. An existing
// repository is kept, but an empty one gets the requested branch.
func (r Repositories) Create(ctx context.Context, written, branch string) (created bool, err error) {
	name, err := canonical(written)
	if err != nil {
		return false, err
	}
	if branch != "" {
		if err := checkBranch(ctx, branch, false); err != nil {
			return false, err
		}
	}
	if _, _, err := r.Find(name); err == nil {
		return false, r.point(ctx, name, branch)
	}
	if branch == "" {
		branch = "main"
	}
	parent := filepath.Dir(r.folder(name))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return false, fmt.Errorf("creating the directory of repository %q: %w", name, err)
	}
	// The repository is created under a temporary name and renamed, so that no client sees an incomplete repository.
	building, err := os.MkdirTemp(parent, ".new-*")
	if err != nil {
		return false, fmt.Errorf("creating repository %q: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(building) }()
	if _, err := git(ctx, r.root, "init", "--bare", "--quiet", "--template=", "--initial-branch="+branch, building); err != nil {
		return false, fmt.Errorf("creating repository %q: %w", name, err)
	}
	if err := installHook(building); err != nil {
		return false, fmt.Errorf("creating repository %q: %w", name, err)
	}
	if err := os.Rename(building, r.folder(name)); err != nil {
		if _, _, found := r.Find(name); found == nil { // another process has created it
			return false, nil
		}
		return false, fmt.Errorf("creating repository %q: %w", name, err)
	}
	return true, nil
}

// point sets HEAD of an empty repository. A repository with commits would lose its default branch.
func (r Repositories) point(ctx context.Context, name, branch string) error {
	if branch == "" {
		return nil
	}
	empty, err := r.empty(ctx, name)
	if err != nil || !empty {
		return err
	}
	_, err = git(ctx, r.folder(name), "symbolic-ref", "HEAD", "refs/heads/"+branch)
	return err
}

func (r Repositories) empty(ctx context.Context, name string) (bool, error) {
	refs, err := git(ctx, r.folder(name), "for-each-ref", "--count=1")
	return refs == "", err
}

// List returns all repositories, sorted by name.
func (r Repositories) List(ctx context.Context) ([]Repository, error) {
	list := []Repository{}
	err := filepath.WalkDir(r.root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.IsDir() || path == r.root {
			return nil
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(entry.Name(), ".git") {
			return nil
		}
		relative, err := filepath.Rel(r.root, path)
		if err != nil {
			return err
		}
		repository, err := r.describe(ctx, filepath.ToSlash(strings.TrimSuffix(relative, ".git")))
		if err != nil {
			return err
		}
		list = append(list, repository)
		return filepath.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("listing repositories: %w", err)
	}
	slices.SortFunc(list, func(a, b Repository) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (r Repositories) describe(ctx context.Context, name string) (Repository, error) {
	branch, err := git(ctx, r.folder(name), "symbolic-ref", "--short", "HEAD")
	if err != nil {
		return Repository{}, err
	}
	empty, err := r.empty(ctx, name)
	if err != nil {
		return Repository{}, err
	}
	protected, err := readProtected(r.folder(name))
	return Repository{Name: name, Branch: branch, Empty: empty, ProtectedBranches: protected}, err
}

// git runs an administrative command in a directory and returns its output.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = folder
	cmd.Env = environment(folder)
	output, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s: %w", args[0], trimmed(failed.Stderr), err)
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(trimmed(output)), nil
}

// environment returns the environment of the server's child processes, without the Git configuration and hooks of the
// user who started the sandbox.
func environment(home string) []string {
	return append(process.Environment(home), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
}

// settings returns the Git configuration of a Git host as options for each child process, so that repositories do not
// have to contain it.
func settings() []string {
	return []string{
		"-c", "http.receivepack=true", // the server decides who may push
		"-c", "uploadpack.allowFilter=true",
		"-c", "uploadpack.allowAnySHA1InWant=true", // allows shallow fetches of a commit, like Git hosts
		"-c", "receive.autogc=false", // would continue in the background after the push
	}
}

func trimmed(output []byte) []byte { return []byte(strings.TrimSpace(string(output))) }
