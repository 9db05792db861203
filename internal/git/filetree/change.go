package filetree

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// ConflictError is returned if an element of a path exists with a different type.
type ConflictError struct{ Path, Is, Wanted string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%q in the repository is a %s, not a %s", e.Path, e.Is, e.Wanted)
}

// With returns a copy of the tree with the contents of files. It removes files whose content is nil, and directories that
// become empty. It reads only the directories of the files.
func (t *Tree) With(files map[string][]byte) (*Tree, error) {
	changes := make(map[string]File, len(files))
	for name, content := range files {
		if changes[name] = nil; content != nil {
			changes[name] = memory{content: content}
		}
	}
	root, err := t.root.with("", changes)
	return New(root), err
}

// Of returns a tree of files by slash-separated path.
func Of(files map[string]File) (*Tree, error) {
	root, err := (&Node{}).with("", files)
	return New(root), err
}

// InMemory returns a tree of contents by slash-separated path.
func InMemory(contents map[string][]byte) (*Tree, error) {
	files := make(map[string]File, len(contents))
	for name, content := range contents {
		files[name] = memory{content: content}
	}
	return Of(files)
}

// Memory returns a file in memory.
func Memory(content []byte) File { return memory{content: content} }

// Changed reports whether With has created the entry.
func (n *Node) Changed() bool { return n.changed }

func (n *Node) with(at string, files map[string]File) (*Node, error) {
	old, err := n.Entries()
	if err != nil {
		return nil, err
	}
	entries := map[string]*Node{}
	for _, entry := range old {
		entries[entry.Name] = entry
	}
	below := map[string]map[string]File{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		first, rest, nested := strings.Cut(name, "/")
		if !nested {
			if err := put(entries, at, name, files[name]); err != nil {
				return nil, err
			}
			continue
		}
		if below[first] == nil {
			below[first] = map[string]File{}
		}
		below[first][rest] = files[name]
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		folder := entries[name]
		if folder == nil {
			folder = &Node{Name: name, Mode: fs.ModeDir}
		}
		if !folder.Mode.IsDir() {
			return nil, &ConflictError{path.Join(at, name), folder.kind(), "directory"}
		}
		if folder, err = folder.with(path.Join(at, name), below[name]); err != nil {
			return nil, err
		}
		if entries[name] = folder; len(folder.entries) == 0 {
			delete(entries, name)
		}
	}
	changed := &Node{Name: n.Name, Mode: fs.ModeDir, changed: true, List: func() ([]*Node, error) { return slices.Collect(maps.Values(entries)), nil }}
	_, err = changed.Entries()
	return changed, err
}

// put sets a file in a directory, or removes it.
func put(entries map[string]*Node, at, name string, file File) (err error) {
	old := entries[name]
	switch {
	case file == nil && (old == nil || old.Mode.IsDir()):
		return &fs.PathError{Op: "remove", Path: path.Join(at, name), Err: fs.ErrNotExist}
	case file == nil:
		delete(entries, name)
		return nil
	case old != nil && old.File == nil:
		return &ConflictError{path.Join(at, name), old.kind(), "file"}
	case old != nil:
		if content, ok := file.(memory); ok {
			content.executable, err = old.File.Executable()
			file = content
		}
	}
	entries[name] = &Node{Name: name, File: file, changed: true}
	return err
}

// kind returns the type of the entry for messages.
func (n *Node) kind() string {
	switch n.Mode {
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symbolic link"
	case Submodule:
		return "submodule"
	}
	return "file"
}

// memory is a file in memory.
type memory struct {
	content    []byte
	executable bool
}

// Size implements File.
func (m memory) Size() (int64, error) { return int64(len(m.content)), nil }

// Executable implements File.
func (m memory) Executable() (bool, error) { return m.executable, nil }

// Read implements File.
func (m memory) Read() ([]byte, error) { return slices.Clone(m.content), nil }

// Hash implements File.
func (m memory) Hash() (plumbing.Hash, error) {
	return plumbing.ComputeHash(plumbing.BlobObject, m.content), nil
}
