package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoRepository is returned if a directory is not in a clone.
var ErrNoRepository = errors.New("not in a Git repository")

// Location locates a repository on disk.
type Location struct {
	// Directory is a directory in the work tree, or a bare repository.
	Directory string
	// GitDir and WorkTree are the values of GIT_DIR and GIT_WORK_TREE, which are optional.
	GitDir, WorkTree string
}

// resolve returns the directory with the Git data, and the work tree or "".
func (l Location) resolve() (gitDir, root string, err error) {
	folder, err := filepath.Abs(l.Directory)
	if err != nil {
		return "", "", fmt.Errorf("finding %s: %w", l.Directory, err)
	}
	inside := func(name string) string {
		if filepath.IsAbs(name) {
			return filepath.Clean(name)
		}
		return filepath.Join(folder, name)
	}
	if l.GitDir != "" {
		gitDir, err = gitDirectory(inside(l.GitDir))
		if root = folder; l.WorkTree != "" {
			root = inside(l.WorkTree)
		}
		return gitDir, root, err
	}
	for at := folder; ; at = filepath.Dir(at) {
		gitDir, err = gitDirectory(filepath.Join(at, ".git"))
		if err == nil {
			if root = at; l.WorkTree != "" {
				root = inside(l.WorkTree)
			}
			return gitDir, root, nil
		}
		if !errors.Is(err, ErrNoRepository) {
			return "", "", err
		}
		if gitDir, err = gitDirectory(at); err == nil {
			return gitDir, "", nil
		}
		if at == filepath.Dir(at) {
			return "", "", ErrNoRepository
		}
	}
}

// gitDirectory returns the directory with the Git data: name itself or, in linked work trees and
// submodules, the directory to which the file name refers.
func gitDirectory(name string) (string, error) {
	const maxLength = 4096
	info, err := os.Stat(name)
	if err != nil {
		return "", ErrNoRepository
	}
	if info.Mode().IsRegular() && info.Size() <= maxLength {
		text, err := os.ReadFile(name)
		target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
		if err != nil || !ok {
			return "", fmt.Errorf("opening the Git repository: %s does not refer to a Git directory", name)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = target
	}
	if head, err := os.Stat(filepath.Join(name, "HEAD")); err != nil || head.IsDir() {
		return "", ErrNoRepository
	}
	if _, err := os.Stat(filepath.Join(commonDirectory(name), "objects")); err != nil {
		return "", ErrNoRepository
	}
	return name, nil
}

// commonDirectory returns the directory that a linked work tree shares with its repository.
func commonDirectory(gitDir string) string {
	text, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	common := strings.TrimSpace(string(text))
	switch {
	case err != nil || common == "":
		return gitDir
	case filepath.IsAbs(common):
		return common
	}
	return filepath.Join(gitDir, common)
}
