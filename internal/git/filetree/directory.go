package filetree

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/budget"
)

// Directory returns the tree of a directory. The directory itself may be a symbolic link. It is opened on the first read.
func Directory(root string) *Tree {
	d := &disk{open: sync.OnceValues(func() (*os.Root, error) { return os.OpenRoot(root) })}
	return New(&Node{Name: ".", Mode: fs.ModeDir, List: func() ([]*Node, error) { return d.list(".") }})
}

// disk reads files below a directory.
type disk struct {
	open func() (*os.Root, error)

	mu sync.Mutex
	// parent is the opened directory at the path at. It contains the last file that was read, and often also the next
	// one.
	parent *os.Root
	at     string
}

// list returns the entries of a directory.
func (d *disk) list(name string) ([]*Node, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	nodes := make([]*Node, len(entries))
	for i, e := range entries {
		below := path.Join(name, e.Name())
		nodes[i] = &Node{Name: e.Name(), Mode: e.Type()}
		switch {
		case e.IsDir():
			nodes[i].List = func() ([]*Node, error) { return d.list(below) }
		case e.Type().IsRegular():
			nodes[i].File = &diskFile{d, below, e}
		case e.Type() == fs.ModeSymlink:
			nodes[i].Identity = func() (plumbing.Hash, error) {
				target, err := root.Readlink(below)
				return plumbing.ComputeHash(plumbing.BlobObject, []byte(filepath.ToSlash(target))), err
			}
		}
	}
	return nodes, err
}

// diskFile is a regular file on disk.
type diskFile struct {
	disk  *disk
	name  string
	entry fs.DirEntry
}

// Size implements File.
func (f *diskFile) Size() (int64, error) {
	info, err := f.entry.Info()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Executable implements File.
func (f *diskFile) Executable() (bool, error) {
	info, err := f.entry.Info()
	return err == nil && info.Mode()&0o100 != 0, err
}

// Read implements File.
func (f *diskFile) Read() ([]byte, error) {
	file, info, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened read-only
	if info.Size() > budget.TreeFile {
		return nil, budget.TooLarge(f.name, "the file", budget.TreeFile)
	}
	content := make([]byte, info.Size())
	_, err = io.ReadFull(file, content)
	return content, err
}

// Hash implements File. It does not load the file into memory.
func (f *diskFile) Hash() (plumbing.Hash, error) {
	file, info, err := f.open()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer func() { _ = file.Close() }() // opened read-only
	hasher := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	n, err := io.Copy(hasher, file)
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s changed while it was being read", f.name)
	}
	return hasher.Sum(), err
}

// open opens the file and returns an error if it is no longer a regular file.
func (f *diskFile) open() (*os.File, fs.FileInfo, error) {
	root, err := f.disk.open()
	if err != nil {
		return nil, nil, err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.parent == nil || f.disk.at != path.Dir(f.name) {
		parent, err := root.OpenRoot(path.Dir(f.name))
		if err != nil {
			return nil, nil, err
		}
		if f.disk.parent != nil {
			_ = f.disk.parent.Close() // opened read-only
		}
		f.disk.parent, f.disk.at = parent, path.Dir(f.name)
	}
	info, err := f.disk.parent.Lstat(path.Base(f.name))
	if err == nil && !info.Mode().IsRegular() {
		err = special(f.name, info.Mode())
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := f.disk.parent.Open(path.Base(f.name))
	return file, info, err
}
