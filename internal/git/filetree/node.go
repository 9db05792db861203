package filetree

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// Submodule is the mode of a submodule whose files are not in the tree.
const Submodule = fs.ModeIrregular

// File reads a regular file.
type File interface {
	Size() (int64, error)
	Executable() (bool, error)
	// Read returns the content, or a budget.ExceededError if it is larger than budget.TreeFile.
	Read() ([]byte, error)
	Hash() (plumbing.Hash, error)
}

// Node is an entry of a directory.
type Node struct {
	Name string
	// Mode is the type of the entry.
	Mode fs.FileMode
	// File is set for a regular file.
	File File
	// List returns the entries of a directory. It is called once.
	List func() ([]*Node, error)
	// Identity returns the Git hash of a directory or a symbolic link, and the commit of a submodule. The hash of a
	// directory whose Identity is nil is computed from its entries.
	Identity func() (plumbing.Hash, error)

	// changed is set for entries that With has created.
	changed bool

	listed  sync.Once
	entries []*Node
	err     error
	hashed  sync.Once
	sum     plumbing.Hash
	sumErr  error
}

// Entries returns the entries of a directory, sorted by name.
func (n *Node) Entries() ([]*Node, error) {
	n.listed.Do(func() {
		if n.List != nil {
			n.entries, n.err = n.List()
			slices.SortFunc(n.entries, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
		}
	})
	return n.entries, n.err
}

// child returns an entry, nil if there is none.
func (n *Node) child(name string) (*Node, error) {
	entries, err := n.Entries()
	i, ok := slices.BinarySearchFunc(entries, name, func(n *Node, name string) int { return strings.Compare(n.Name, name) })
	if !ok || err != nil {
		return nil, err
	}
	return entries[i], nil
}

// plain reports whether the entry is a regular file or a directory.
func (n *Node) plain() bool { return n.Mode.IsRegular() || n.Mode.IsDir() }

// Hash returns the hash of the object that Git would create.
func (n *Node) Hash() (plumbing.Hash, error) {
	switch {
	case n.File != nil:
		return n.File.Hash()
	case n.Identity != nil:
		return n.Identity()
	}
	n.hashed.Do(func() {
		var text []byte
		text, n.sumErr = n.Encode()
		n.sum = plumbing.ComputeHash(plumbing.TreeObject, text)
	})
	return n.sum, n.sumErr
}

// Encode returns a directory as a Git tree object.
func (n *Node) Encode() ([]byte, error) {
	entries, err := n.Entries()
	if err != nil {
		return nil, err
	}
	key := func(n *Node) string {
		if n.Mode.IsDir() {
			return n.Name + "/"
		}
		return n.Name
	}
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b *Node) int { return strings.Compare(key(a), key(b)) })
	var text []byte
	for _, entry := range sorted {
		mode, err := entry.gitMode()
		if err != nil {
			return nil, err
		}
		if mode == filemode.Empty {
			continue
		}
		hash, err := entry.Hash()
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%o %s\x00", uint32(mode), entry.Name)
		text = append(text, hash[:]...)
	}
	return text, nil
}

// gitMode returns the mode of the entry in a tree object, or filemode.Empty if Git does not store it.
func (n *Node) gitMode() (filemode.FileMode, error) {
	switch n.Mode {
	case fs.ModeDir:
		return filemode.Dir, nil
	case fs.ModeSymlink:
		return filemode.Symlink, nil
	case Submodule:
		return filemode.Submodule, nil
	case 0:
		executable, err := n.File.Executable()
		if executable {
			return filemode.Executable, err
		}
		return filemode.Regular, err
	}
	return filemode.Empty, nil
}
