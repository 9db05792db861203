package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/fluxkit/flux/internal/budget"
)

// files is a tree as kustomize reads it, within the budget of the build. The
// kustomization that the build generates replaces the folder's own.
type files struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one build
	tree fs.FS
	// generated is the kustomization.yaml that replaces the folder's own.
	generated string
	content   []byte
	// encrypted are the sources of generators that are decrypted when read.
	encrypted map[string]string
	decrypt   Decrypter
	budget    *budget.Budget
	// elsewhere runs what is too expensive for this process; nil runs all of it here.
	elsewhere Kustomizer
	// cost is what kustomize has read in this process, nil where it has no bound.
	cost *cost
	// reads are how often each file was read.
	reads map[string]int
	// refused is the first error of a read that the build must not go on after:
	// kustomize takes a file that cannot be read for one that is not there.
	refused error
}

// maxReads bounds how often one build reads a file, as a base of many others.
const maxReads = 1000

// admit counts a file and checks that its content may be decoded.
func (f *files) admit(name string, data []byte) error {
	if f.reads == nil {
		f.reads = map[string]int{}
	}
	if f.reads[name]++; f.reads[name] > maxReads {
		return f.refuse(&budget.ExceededError{Name: name, Fact: fmt.Sprintf("the file is read more than %d times: bases refer to each other too often", maxReads)})
	}
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

// IsDir implements [FileSystem].
func (f *files) IsDir(name string) bool {
	info, err := fs.Stat(f.tree, inside(name))
	return err == nil && info.IsDir()
}

// Exists implements [FileSystem].
func (f *files) Exists(name string) bool {
	if f.generated != "" && inside(name) == f.generated {
		return true
	}
	_, err := fs.Stat(f.tree, inside(name))
	return err == nil
}

// ReadFile implements [FileSystem].
func (f *files) ReadFile(name string) ([]byte, error) {
	data, err := f.read(name)
	if err != nil {
		return nil, err
	}
	if !isKustomizationFile(name) {
		return data, nil
	}
	if f.decrypt != nil {
		if err := f.noteSources(path.Dir(inside(name)), data); err != nil {
			return nil, err
		}
	}
	return data, f.refuse(f.checkRemote(inside(name), data))
}

func (f *files) read(name string) ([]byte, error) {
	if f.ctx.Err() != nil {
		return nil, f.refuse(context.Cause(f.ctx))
	}
	if f.refused != nil {
		return nil, f.refused
	}
	name = inside(name)
	if f.generated != "" && name == f.generated {
		if f.cost != nil {
			if err := f.refuse(f.cost.read(name, f.content)); err != nil {
				return nil, err
			}
		}
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
	if f.cost != nil {
		if err := f.refuse(f.cost.read(name, data)); err != nil {
			return nil, err
		}
	}
	if format, ok := f.encrypted[name]; ok {
		clear, err := f.decrypt.Decrypt(f.ctx, name, data, format)
		if errors.Is(err, ErrNoKey) {
			return data, nil
		}
		if data = clear; err != nil {
			return nil, fmt.Errorf("decrypting %s: %w", name, err)
		}
	}
	return data, nil
}

// ReadDir implements [FileSystem].
func (f *files) ReadDir(name string) ([]string, error) {
	entries, err := fs.ReadDir(f.tree, inside(name))
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

// Glob implements [FileSystem].
func (f *files) Glob(pattern string) ([]string, error) {
	matches, err := fs.Glob(f.tree, inside(pattern))
	for i := range matches {
		matches[i] = "/" + matches[i]
	}
	return matches, err
}
