package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// Workspace is a local directory that is used as the artifact of a source.
type Workspace struct {
	// Root is the absolute path of the directory.
	Root string
	// Git is set if Root is the top of a Git work tree.
	Git bool
}

// Around returns the Git work tree that contains a directory. Outside of Git, the root is the current directory if it
// contains the directory, else the directory itself. Files above the root are never read.
func Around(folder string) (Workspace, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return Workspace{}, fmt.Errorf("finding %s: %w", folder, err)
	}
	for at := absolute; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return Workspace{at, true}, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	current, err := filepath.Abs(".")
	if err != nil {
		return Workspace{}, fmt.Errorf("finding the current directory: %w", err)
	}
	if relative, err := filepath.Rel(current, absolute); err == nil && filepath.IsLocal(relative) {
		return Workspace{Root: current}, nil
	}
	return Workspace{Root: absolute}, nil
}

// ForSource returns the workspace for building a Kustomization. Outside of Git, if the directory ends in its spec.path,
// the root is the directory without spec.path, so that the build can read the rest of the source.
func (w Workspace) ForSource(folder, path string) Workspace {
	if w.Git || folder == "" {
		return w
	}
	absolute, err := filepath.Abs(folder)
	root, ok := strings.CutSuffix(absolute, filepath.Clean(string(filepath.Separator)+path))
	if err != nil || !ok || root == filepath.VolumeName(absolute) { // "" except on Windows
		return w
	}
	return Workspace{Root: root}
}

// Tree returns the files of the workspace.
func (w Workspace) Tree() *filetree.Tree { return filetree.Directory(w.Root) }

// Inside returns the path of directory relative to the root of the work tree.
func (w Workspace) Inside(folder string) (string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", folder, err)
	}
	relative, err := filepath.Rel(w.Root, absolute)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("%s is outside of %s", folder, w.Root)
	}
	return filepath.ToSlash(relative), nil
}

// Remotes returns the addresses of the remotes in comparable form, and none outside of Git.
func (w Workspace) Remotes() []string {
	if !w.Git {
		return nil
	}
	data := filepath.Join(w.Root, ".git")
	if linked, err := gitDirectory(data); err == nil {
		data = commonDirectory(linked)
	}
	file, err := os.Open(filepath.Join(data, "config"))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // opened read-only
	c, err := config.ReadConfig(file)
	if err != nil {
		return nil
	}
	return remotesIn(c)
}
