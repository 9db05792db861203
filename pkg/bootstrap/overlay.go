package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fluxkit/flux/internal/gitrepo"
)

// buildFolder runs kustomize on a folder of the repository.
func buildFolder(files overlay, folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = kustomize.LoadRestrictionsNone // the file system has no files outside the repository
	built, err := krusty.MakeKustomizer(options).Run(repositoryFiles{files: files}, "/"+folder)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// overlay is the repository with the files that are not committed yet.
type overlay struct {
	base  *gitrepo.Repository
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

// repositoryFiles is the repository as a read-only file system for kustomize.
// It reads a file when kustomize does.
type repositoryFiles struct {
	filesys.FileSystem // nil: a build calls only the methods that are implemented here
	files              overlay
}

func inside(name string) string { return path.Clean("/" + filepath.ToSlash(name))[1:] }

// IsDir implements filesys.FileSystem.
func (f repositoryFiles) IsDir(name string) bool {
	_, err := f.files.list(inside(name))
	return err == nil
}

// Exists implements filesys.FileSystem.
func (f repositoryFiles) Exists(name string) bool {
	if f.IsDir(name) {
		return true
	}
	_, err := f.files.read(inside(name))
	return err == nil
}

// ReadFile implements filesys.FileSystem.
func (f repositoryFiles) ReadFile(name string) ([]byte, error) { return f.files.read(inside(name)) }

// ReadDir implements filesys.FileSystem.
func (f repositoryFiles) ReadDir(name string) ([]string, error) {
	names, err := f.files.list(inside(name))
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], "/")
	}
	return names, err
}

// CleanedAbs implements filesys.FileSystem.
func (f repositoryFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	clean := "/" + inside(name)
	if f.IsDir(clean) {
		return filesys.ConfirmedDir(clean), "", nil
	}
	if !f.Exists(clean) {
		return "", "", fmt.Errorf("%s not found in the repository", clean)
	}
	return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
}

// Glob implements filesys.FileSystem.
func (f repositoryFiles) Glob(pattern string) ([]string, error) {
	folder := path.Dir("/" + inside(pattern))
	names, err := f.files.list(inside(folder))
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

var errReadOnly = errors.New("the repository is read-only during a build")

// The methods of filesys.FileSystem below write, and fail.

// Create implements filesys.FileSystem.
func (f repositoryFiles) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir implements filesys.FileSystem.
func (f repositoryFiles) Mkdir(string) error { return errReadOnly }

// MkdirAll implements filesys.FileSystem.
func (f repositoryFiles) MkdirAll(string) error { return errReadOnly }

// RemoveAll implements filesys.FileSystem.
func (f repositoryFiles) RemoveAll(string) error { return errReadOnly }

// WriteFile implements filesys.FileSystem.
func (f repositoryFiles) WriteFile(string, []byte) error { return errReadOnly }

// Open implements filesys.FileSystem.
func (f repositoryFiles) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Walk implements filesys.FileSystem.
func (f repositoryFiles) Walk(string, filepath.WalkFunc) error { return errReadOnly }
