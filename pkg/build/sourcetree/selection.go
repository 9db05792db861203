package sourcetree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// Origin is a file of another tree.
type Origin struct {
	Tree fs.FS
	Name string
}

// Selection is a tree of files from other trees. A file is read on access.
type Selection struct {
	origins map[string]Origin
	folders folders
	hashes  map[string]string
	// whole holds the trees from which the files were selected, to explain why a file is missing.
	whole []fs.FS
}

// Hasher is implemented by trees that know hashes of the content of files.
type Hasher interface {
	Hash(name string) (string, error)
}

// NewSelection returns the tree with the given files by slash-separated path.
func NewSelection(origins map[string]Origin) *Selection {
	s := &Selection{origins: origins, hashes: map[string]string{}}
	s.folders = foldersOf(maps.Keys(origins), func(name string, folder bool) fs.DirEntry { return selected{s, name, folder} })
	return s
}

// Has reports whether the tree contains a file or folder.
func (s *Selection) Has(name string) bool {
	_, file := s.origins[name]
	_, folder := s.folders[name]
	return file || folder
}

// Origins returns the origins of the files by path.
func (s *Selection) Origins() map[string]Origin { return s.origins }

// Hash returns the same value for files and folders with the same content, and
// fs.ErrNotExist for a missing name. It must not be called concurrently.
func (s *Selection) Hash(name string) (string, error) {
	if known, ok := s.hashes[name]; ok {
		return known, nil
	}
	hash, err := s.hash(name)
	if err == nil {
		s.hashes[name] = hash
	}
	return hash, err
}

func (s *Selection) hash(name string) (string, error) {
	if from, ok := s.origins[name]; ok {
		if hasher, ok := from.Tree.(Hasher); ok {
			return hasher.Hash(from.Name)
		}
		content, err := fs.ReadFile(from.Tree, from.Name)
		sum := sha256.Sum256(content)
		return "sha256:" + hex.EncodeToString(sum[:]), err
	}
	entries, ok := s.folders[name]
	if !ok {
		return "", s.missing("hash", name)
	}
	sum := sha256.New()
	for _, entry := range entries {
		hash, err := s.Hash(path.Join(name, entry.Name()))
		if err != nil {
			return "", err
		}
		sum.Write(fmt.Appendf(nil, "%q %t %s\n", entry.Name(), entry.IsDir(), hash))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// excludedError is returned for a file that is in the source but not in its artifact.
type excludedError struct{ name string }

func (e excludedError) Error() string {
	return e.name + " is excluded from the artifact by .sourceignore, spec.ignore or the defaults of source-controller"
}

// Is reports whether target is fs.ErrNotExist.
func (e excludedError) Is(target error) bool { return target == fs.ErrNotExist }

// missing returns the error for a name that is not in the tree. It keeps errors of the original
// tree other than that the file is missing, such as for symbolic links.
func (s *Selection) missing(op, name string) error {
	err := fs.ErrNotExist
	for _, tree := range s.whole {
		info, statErr := fs.Stat(tree, name)
		var located *fs.PathError
		switch {
		case statErr == nil && !info.IsDir():
			err = excludedError{name}
		case errors.As(statErr, &located):
			err = located.Err
		}
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// ReadFile implements fs.ReadFileFS.
func (s *Selection) ReadFile(name string) ([]byte, error) {
	if from, ok := s.origins[name]; ok {
		return fs.ReadFile(from.Tree, from.Name)
	}
	return nil, s.missing("open", name)
}

// ReadDir implements fs.ReadDirFS.
func (s *Selection) ReadDir(name string) ([]fs.DirEntry, error) {
	if entries, ok := s.folders[name]; ok {
		return slices.Clone(entries), nil
	}
	return nil, s.missing("open", name)
}

// Stat implements fs.StatFS.
func (s *Selection) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	_, folder := s.folders[name]
	if !s.Has(name) {
		return nil, s.missing("stat", name)
	}
	return selected{s, name, folder}.Info()
}

// Open implements fs.FS.
func (s *Selection) Open(name string) (fs.File, error) {
	info, err := s.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &treeFile{Reader: bytes.NewReader(nil), info: treeInfo{name: info.Name(), folder: true}, entries: s.folders[name]}, nil
	}
	content, err := s.ReadFile(name)
	return &treeFile{Reader: bytes.NewReader(content), info: treeInfo{name: info.Name(), size: int64(len(content))}}, err
}

// selected is an entry of a folder.
type selected struct {
	tree   *Selection
	name   string
	folder bool
}

// Name implements fs.DirEntry.
func (e selected) Name() string { return path.Base(e.name) }

// IsDir implements fs.DirEntry.
func (e selected) IsDir() bool { return e.folder }

// Type implements fs.DirEntry.
func (e selected) Type() fs.FileMode { return treeInfo{folder: e.folder}.Mode().Type() }

// Info implements fs.DirEntry.
func (e selected) Info() (fs.FileInfo, error) {
	if e.folder {
		return treeInfo{name: e.Name(), folder: true}, nil
	}
	from := e.tree.origins[e.name]
	info, err := fs.Stat(from.Tree, from.Name)
	if err != nil {
		return nil, err
	}
	return treeInfo{name: e.Name(), size: info.Size()}, nil
}
