package bootstrap

import (
	"io/fs"
	"path"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build"
)

// buildDirectory runs kustomize on a directory of the repository.
func buildDirectory(files *filetree.Tree, folder string) ([]*unstructured.Unstructured, error) {
	built, err := build.Kustomize("/"+folder, folders{files})
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, content := range built {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// folders is the file system of a build.
type folders struct{ tree *filetree.Tree }

var _ build.FileSystem = folders{}

func inside(name string) string { return path.Join(".", path.Clean("/"+filepath.ToSlash(name))) }

// IsDir implements [build.FileSystem].
func (f folders) IsDir(name string) bool {
	info, err := f.tree.Stat(inside(name))
	return err == nil && info.IsDir()
}

// Exists implements [build.FileSystem].
func (f folders) Exists(name string) bool {
	_, err := f.tree.Stat(inside(name))
	return err == nil
}

// ReadFile implements [build.FileSystem].
func (f folders) ReadFile(name string) ([]byte, error) { return f.tree.ReadFile(inside(name)) }

// ReadDir implements [build.FileSystem].
func (f folders) ReadDir(name string) (names []string, err error) {
	entries, err := f.tree.ReadDir(inside(name))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// Glob implements [build.FileSystem].
func (f folders) Glob(pattern string) ([]string, error) {
	matches, err := fs.Glob(f.tree, inside(pattern))
	for i := range matches {
		matches[i] = "/" + matches[i]
	}
	return matches, err
}
