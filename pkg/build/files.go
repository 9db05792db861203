package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/fluxkit/flux/internal/budget"
)

var errReadOnly = errors.New("a build does not write")

// files shows kustomize a tree as a file system with the tree's root as "/".
// It cannot be written to; what a build generates is laid over it.
type files struct {
	filesys.FileSystem // nil: whatever is not below is never called by a build
	ctx                context.Context
	tree               fs.FS
	// generated is the kustomization.yaml that stands in for the folder's own.
	generated string
	content   []byte
	// encrypted are the sources of generators that are decrypted when read.
	encrypted map[string]string
	decrypt   Decrypter
	// schema tells that a kustomization brings a schema of its own.
	schema bool
	budget *budget.Budget
	// refused is the first error of a read that the build must not go on after:
	// kustomize takes a file that cannot be read for one that is not there.
	refused error
}

// admit counts a file and checks that its content may be decoded.
func (f *files) admit(name string, data []byte) error {
	err := f.budget.File(name, int64(len(data)))
	if err == nil {
		err = budget.YAML(name, data)
	}
	return f.refuse(err)
}

func (f *files) refuse(err error) error {
	if err != nil && f.refused == nil {
		f.refused = err
	}
	return err
}

// inside is a name of kustomize as fs.FS wants it.
func inside(name string) string {
	if clean := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/"); clean != "" {
		return clean
	}
	return "."
}

// cloned tells whether a path is where kustomize has put a remote base: it
// clones into temporary folders of its own on disk, and removes them.
func cloned(name string) bool {
	return strings.HasPrefix(name, filepath.Join(os.TempDir(), "kustomize-"))
}

// IsDir implements filesys.FileSystem.
func (f *files) IsDir(name string) bool {
	if cloned(name) {
		return filesys.MakeFsOnDisk().IsDir(name)
	}
	info, err := fs.Stat(f.tree, inside(name))
	return err == nil && info.IsDir()
}

// Exists implements filesys.FileSystem.
func (f *files) Exists(name string) bool {
	if cloned(name) {
		return filesys.MakeFsOnDisk().Exists(name)
	}
	if f.generated != "" && inside(name) == f.generated {
		return true
	}
	_, err := fs.Stat(f.tree, inside(name))
	return err == nil
}

// ReadFile implements filesys.FileSystem.
func (f *files) ReadFile(name string) ([]byte, error) {
	data, err := f.read(name)
	if err != nil {
		return nil, err
	}
	if cloned(name) || !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
		return data, nil
	}
	if bytes.Contains(data, []byte("openapi:")) {
		// A schema of its own is meant to add to the built-in one, which has to be there first.
		f.schema = true
		openapi.Schema()
	}
	if f.decrypt != nil {
		err = f.noteSources(path.Dir(inside(name)), data)
	}
	return data, err
}

func (f *files) read(name string) ([]byte, error) {
	if f.ctx.Err() != nil {
		return nil, f.refuse(context.Cause(f.ctx))
	}
	if f.refused != nil {
		return nil, f.refused
	}
	if cloned(name) {
		return os.ReadFile(name)
	}
	name = inside(name)
	if f.generated != "" && name == f.generated {
		return f.content, f.admit(name, f.content)
	}
	if info, err := fs.Stat(f.tree, name); err == nil && info.Size() > f.budget.Limits().FileBytes {
		return nil, f.refuse(f.budget.File(name, info.Size()))
	}
	data, err := fs.ReadFile(f.tree, name)
	if err != nil {
		return nil, err
	}
	if err := f.admit(name, data); err != nil {
		return nil, err
	}
	if format, ok := f.encrypted[name]; ok {
		clear, err := f.decrypt.Decrypt(f.ctx, data, format)
		if errors.Is(err, ErrNoKey) {
			return data, nil
		}
		if data = clear; err != nil {
			return nil, fmt.Errorf("decrypting %s: %w", name, err)
		}
	}
	return data, nil
}

// ReadDir implements filesys.FileSystem.
func (f *files) ReadDir(name string) ([]string, error) {
	if cloned(name) {
		return filesys.MakeFsOnDisk().ReadDir(name)
	}
	entries, err := fs.ReadDir(f.tree, inside(name))
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

// CleanedAbs implements filesys.FileSystem.
func (f *files) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if cloned(name) {
		return filesys.MakeFsOnDisk().CleanedAbs(name)
	}
	clean := path.Clean("/" + filepath.ToSlash(name))
	if f.IsDir(clean) {
		return filesys.ConfirmedDir(clean), "", nil
	}
	if !f.Exists(clean) {
		return "", "", fmt.Errorf("there is no %s in the source", inside(clean))
	}
	return filesys.ConfirmedDir(path.Dir(clean)), path.Base(clean), nil
}

// Glob implements filesys.FileSystem.
func (f *files) Glob(pattern string) ([]string, error) {
	if cloned(pattern) {
		return filesys.MakeFsOnDisk().Glob(pattern)
	}
	matches, err := fs.Glob(f.tree, inside(pattern))
	for i := range matches {
		matches[i] = "/" + matches[i]
	}
	return matches, err
}

// RemoveAll implements filesys.FileSystem: kustomize removes what it cloned.
func (f *files) RemoveAll(name string) error {
	if cloned(name) {
		return os.RemoveAll(name)
	}
	return errReadOnly
}

// The rest of filesys.FileSystem is for writing.

// Create implements filesys.FileSystem.
func (f *files) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir implements filesys.FileSystem.
func (f *files) Mkdir(string) error { return errReadOnly }

// MkdirAll implements filesys.FileSystem.
func (f *files) MkdirAll(string) error { return errReadOnly }

// WriteFile implements filesys.FileSystem.
func (f *files) WriteFile(string, []byte) error { return errReadOnly }

// Open implements filesys.FileSystem.
func (f *files) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Walk implements filesys.FileSystem.
func (f *files) Walk(string, filepath.WalkFunc) error { return errReadOnly }
