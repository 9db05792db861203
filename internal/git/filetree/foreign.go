package filetree

import (
	"io/fs"
	"path"

	"github.com/go-git/go-git/v5/plumbing"
)

// From returns files as a tree.
func From(files fs.FS) *Tree {
	if tree, ok := files.(*Tree); ok {
		return tree
	}
	return New(foreign{files, "."}.directory())
}

// Sub implements fs.SubFS.
func (t *Tree) Sub(dir string) (fs.FS, error) {
	n, err := t.find("sub", dir)
	return New(n), err
}

// FileOf returns a regular file of a tree.
func FileOf(files fs.FS, name string) File {
	if tree, ok := files.(*Tree); ok {
		if n, err := tree.find("open", name); err == nil && n.File != nil {
			return n.File
		}
	}
	return foreign{files, name}
}

// foreign is a file or directory of any fs.FS.
type foreign struct {
	tree fs.FS
	name string
}

func (f foreign) directory() *Node {
	return &Node{Name: path.Base(f.name), Mode: fs.ModeDir, List: func() ([]*Node, error) {
		entries, err := fs.ReadDir(f.tree, f.name)
		nodes := make([]*Node, len(entries))
		for i, entry := range entries {
			below := foreign{f.tree, path.Join(f.name, entry.Name())}
			switch nodes[i] = (&Node{Name: entry.Name(), Mode: entry.Type()}); {
			case entry.IsDir():
				nodes[i] = below.directory()
			case entry.Type().IsRegular():
				nodes[i].File = below
			}
		}
		return nodes, err
	}}
}

// Size implements File.
func (f foreign) Size() (int64, error) {
	info, err := fs.Stat(f.tree, f.name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Executable implements File.
func (f foreign) Executable() (bool, error) {
	info, err := fs.Stat(f.tree, f.name)
	return err == nil && info.Mode()&0o111 != 0, err
}

// Read implements File.
func (f foreign) Read() ([]byte, error) { return fs.ReadFile(f.tree, f.name) }

// Hash implements File.
func (f foreign) Hash() (plumbing.Hash, error) {
	content, err := f.Read()
	return plumbing.ComputeHash(plumbing.BlobObject, content), err
}
