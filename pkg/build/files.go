package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/recall"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// files is the file system of kustomize for a tree, within the budget of the build. The generated
// kustomization replaces the kustomization of the directory.
type files struct {
	ctx  context.Context // files is used for a single build
	tree fs.FS
	// generated is the path of the kustomization.yaml that the generated one replaces.
	generated string
	content   []byte
	// encrypted holds the source files of generators that are decrypted when they are read.
	encrypted map[string]string
	decrypt   Decrypter
	budget    *budget.Budget
	// cache stores results of kustomize. It may be nil. private is set if the result must not be cached.
	cache   Cache
	traces  *recall.Traces
	private bool
	// elsewhere runs builds that are too expensive for this process. Nil runs all of them here.
	elsewhere Kustomizer
	// cost counts what kustomize has read in this process. It is nil if kustomize has no limit.
	cost *inspect.Cost
	// reads counts how often each file was read.
	reads map[string]int
	// refused is the first read error that must fail the build: kustomize treats a file that cannot
	// be read as missing.
	refused error
}

// maxReads limits how often one build reads a file, for example as a base of many overlays.
const maxReads = 1000

// admit counts a file and returns an error if its content exceeds the limits for decoding.
func (f *files) admit(name string, data []byte) error {
	if f.reads == nil {
		f.reads = map[string]int{}
	}
	if f.reads[name]++; f.reads[name] > maxReads {
		return f.refuse(&budget.ExceededError{Name: name, Fact: fmt.Sprintf("the file is read more than %d times: too many bases reference it", maxReads)})
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

// IsDir implements [FileSystem].
func (f *files) IsDir(name string) bool {
	info, err := fs.Stat(f.tree, sourcetree.Clean(name))
	return err == nil && info.IsDir()
}

// Exists implements [FileSystem].
func (f *files) Exists(name string) bool {
	if f.generated != "" && sourcetree.Clean(name) == f.generated {
		return true
	}
	_, err := fs.Stat(f.tree, sourcetree.Clean(name))
	return err == nil
}

// ReadFile implements [FileSystem].
func (f *files) ReadFile(name string) ([]byte, error) {
	data, err := f.read(name)
	if err != nil {
		return nil, err
	}
	if !inspect.IsKustomizationFile(name) {
		return data, nil
	}
	if f.decrypt != nil {
		if err := f.noteSources(path.Dir(sourcetree.Clean(name)), data); err != nil {
			return nil, err
		}
	}
	return data, f.refuse(inspect.Remote(sourcetree.Clean(name), data, f.allows))
}

// allows reports whether bases may be fetched from a host.
func (f *files) allows(host string) bool {
	f.private = true // remote files are not part of the tree, so the result is not cached
	return f.elsewhere != nil && f.elsewhere.Allows(host)
}

func (f *files) read(name string) ([]byte, error) {
	if f.ctx.Err() != nil {
		return nil, f.refuse(context.Cause(f.ctx))
	}
	if f.refused != nil {
		return nil, f.refused
	}
	name = sourcetree.Clean(name)
	if f.generated != "" && name == f.generated {
		if f.cost != nil {
			if err := f.refuse(f.cost.Read(name, f.content)); err != nil {
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
		if err := f.refuse(f.cost.Read(name, data)); err != nil {
			return nil, err
		}
	}
	if format, ok := f.encrypted[name]; ok {
		f.private = true
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

// unlimited reads files without counting them and without decrypting them, to compare them with earlier runs.
type unlimited struct{ *files }

// ReadFile implements [FileSystem].
func (u unlimited) ReadFile(name string) ([]byte, error) {
	name = sourcetree.Clean(name)
	if u.generated != "" && name == u.generated {
		return u.content, nil
	}
	if info, err := fs.Stat(u.tree, name); err == nil && info.Size() > u.budget.Limits().FileBytes {
		return nil, fs.ErrInvalid
	}
	return fs.ReadFile(u.tree, name)
}

// ReadDir implements [FileSystem].
func (f *files) ReadDir(name string) ([]string, error) {
	entries, err := fs.ReadDir(f.tree, sourcetree.Clean(name))
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

// Glob implements [FileSystem].
func (f *files) Glob(pattern string) ([]string, error) {
	matches, err := fs.Glob(f.tree, sourcetree.Clean(pattern))
	for i := range matches {
		matches[i] = "/" + matches[i]
	}
	return matches, err
}
