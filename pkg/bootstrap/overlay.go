package bootstrap

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/repo"
	"github.com/fluxkit/flux/pkg/build"
)

// buildFolder runs kustomize on a folder of the repository.
func buildFolder(files overlay, folder string) ([]*unstructured.Unstructured, error) {
	built, err := build.Kustomize("/"+folder, files)
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

// overlay is the repository with the files that are not committed yet, as the file
// system of a build.
type overlay struct {
	base  *repo.Repository
	files map[string][]byte
}

func (o overlay) read(name string) ([]byte, error) {
	if data, ok := o.files[name]; ok {
		return data, nil
	}
	return o.base.ReadFile(name)
}

// list returns the names in a folder. Names of folders end with a slash.
func (o overlay) list(folder string) ([]string, error) {
	names := map[string]bool{}
	found, err := o.base.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range found {
		names[name] = true
	}
	prefix := folder + "/"
	if folder == "" {
		prefix = ""
	}
	for name := range o.files {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if first, _, nested := strings.Cut(rest, "/"); nested {
				rest = first + "/"
			}
			names[rest] = true
		}
	}
	if len(names) == 0 {
		return nil, &fs.PathError{Op: "open", Path: folder, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

var _ build.FileSystem = overlay{}

func inside(name string) string { return path.Clean("/" + filepath.ToSlash(name))[1:] }

// IsDir implements [build.FileSystem].
func (o overlay) IsDir(name string) bool {
	_, err := o.list(inside(name))
	return err == nil
}

// Exists implements [build.FileSystem].
func (o overlay) Exists(name string) bool {
	if o.IsDir(name) {
		return true
	}
	_, err := o.read(inside(name))
	return err == nil
}

// ReadFile implements [build.FileSystem].
func (o overlay) ReadFile(name string) ([]byte, error) { return o.read(inside(name)) }

// ReadDir implements [build.FileSystem].
func (o overlay) ReadDir(name string) ([]string, error) {
	names, err := o.list(inside(name))
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], "/")
	}
	return names, err
}

// Glob implements [build.FileSystem].
func (o overlay) Glob(pattern string) ([]string, error) {
	folder := path.Dir("/" + inside(pattern))
	names, err := o.list(inside(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var matches []string
	for _, name := range names {
		if ok, matchErr := path.Match(path.Base(pattern), name); matchErr == nil && ok {
			matches = append(matches, path.Join(folder, name))
		}
	}
	return matches, err
}
