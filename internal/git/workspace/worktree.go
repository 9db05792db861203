package workspace

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WorkTree is a local directory that is used as the artifact of a source.
type WorkTree struct {
	// Root is the absolute path of the directory.
	Root string
	// Git is set if Root is the top of a Git work tree.
	Git bool
}

// Around returns the Git work tree that contains a directory. Outside of Git, the root is the
// current directory if it contains the directory, and the directory itself otherwise: files above
// the root are never read.
func Around(folder string) (WorkTree, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return WorkTree{}, fmt.Errorf("finding %s: %w", folder, err)
	}
	for at := absolute; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return WorkTree{at, true}, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	current, err := filepath.Abs(".")
	if err != nil {
		return WorkTree{}, fmt.Errorf("finding the current directory: %w", err)
	}
	if relative, err := filepath.Rel(current, absolute); err == nil && filepath.IsLocal(relative) {
		return WorkTree{Root: current}, nil
	}
	return WorkTree{Root: absolute}, nil
}

// ForSource returns the work tree for building a Kustomization. Outside of
// Git, if folder ends in spec.path, the root is folder without spec.path, so
// that the build can read the rest of the source.
func (w WorkTree) ForSource(folder string, ks *unstructured.Unstructured) WorkTree {
	if w.Git || ks == nil || folder == "" {
		return w
	}
	own, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	absolute, err := filepath.Abs(folder)
	root, ok := strings.CutSuffix(absolute, filepath.Clean(string(filepath.Separator)+own))
	if err != nil || !ok || root == filepath.VolumeName(absolute) { // "" except on Windows
		return w
	}
	return WorkTree{Root: root}
}

// Tree returns the files of the work tree.
func (w WorkTree) Tree() fs.FS { return Folder(w.Root) }

// Inside returns the path of folder relative to the root of the work tree.
func (w WorkTree) Inside(folder string) (string, error) {
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

// Remotes returns the remote URLs in the Git configuration of the work tree,
// in comparable form.
func (w WorkTree) Remotes() map[string]bool {
	known := map[string]bool{}
	config, err := w.Tree().Open(".git/config")
	if err != nil {
		return known // a linked work tree, or not a Git work tree
	}
	defer func() { _ = config.Close() }() // read-only
	for lines := bufio.NewScanner(config); lines.Scan(); {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if ok && strings.TrimSpace(key) == "url" {
			known[ComparableAddress(strings.TrimSpace(value))] = true
		}
	}
	return known
}
