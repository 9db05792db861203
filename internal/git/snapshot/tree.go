package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/fluxkit/flux/internal/budget"
)

const (
	linkMode   = filemode.Symlink
	folderMode = filemode.Dir
	// cacheMax is the maximum size of files that are cached in memory, and cacheTotal that of the
	// cache. Larger files are read each time, and hashed as streams.
	cacheMax   = 1 << 20
	cacheTotal = 128 << 20
)

// Tree is an immutable file tree. It implements fs.FS, fs.ReadFileFS, fs.ReadDirFS and fs.StatFS.
// It has no symbolic links, since source-controller excludes them from artifacts.
type Tree struct{ root *node }

// node is a file or a folder.
type node struct {
	name   string
	folder bool
	hash   plumbing.Hash
	// mode returns the mode of a file of a work tree.
	mode func() (filemode.FileMode, error)
	// links holds the commits of the submodules in a folder by name. It is set when the entries are
	// loaded.
	links map[string]func() (plumbing.Hash, error)
	// size and read return the size and the content of a file, load the entries of a folder.
	size func() (int64, error)
	read func() ([]byte, error)
	load func() ([]*node, error)

	once     sync.Once
	children []*node
	byName   map[string]*node
	err      error
	// hashed computes the hash of content that is not a Git object.
	hashed func() (plumbing.Hash, error)
}

func (n *node) list() ([]*node, error) {
	n.once.Do(func() {
		n.children, n.err = n.load()
		slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
		n.byName = make(map[string]*node, len(n.children))
		for _, child := range n.children {
			n.byName[child.name] = child
		}
	})
	return n.children, n.err
}

func (t *Tree) find(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := t.root
	if name == "." {
		return at, nil
	}
	for _, part := range strings.Split(name, "/") {
		if !at.folder {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		if _, err := at.list(); err != nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: err}
		}
		next, ok := at.byName[part]
		if !ok {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = next
	}
	return at, nil
}

// Hash returns the Git hash of a file or folder, which identifies its content, or fs.ErrNotExist.
func (t *Tree) Hash(name string) (string, error) {
	n, err := t.find("hash", name)
	if err != nil {
		return "", err
	}
	if n.hashed == nil {
		return n.hash.String(), nil
	}
	hash, err := n.hashed()
	return hash.String(), err
}

// ReadFile implements fs.ReadFileFS.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	n, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	if n.folder {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("is a directory")}
	}
	content, err := n.read()
	var exceeded *budget.ExceededError
	if errors.As(err, &exceeded) {
		return nil, budget.TooLarge(name, "the file", budget.TreeFile)
	}
	if len(content) >= cacheMax {
		return content, err // it is not cached
	}
	return bytes.Clone(content), err
}

// ReadDir implements fs.ReadDirFS.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("list", name)
	if err != nil {
		return nil, err
	}
	if !n.folder {
		return nil, &fs.PathError{Op: "list", Path: name, Err: fmt.Errorf("not a directory")}
	}
	children, err := n.list()
	entries := make([]fs.DirEntry, len(children))
	for i, child := range children {
		entries[i] = entry{child}
	}
	return entries, err
}

// Stat implements fs.StatFS.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(path.Base(name))
}

// Open implements fs.FS.
func (t *Tree) Open(name string) (fs.File, error) {
	info, err := t.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		entries, err := t.ReadDir(name)
		return &openFolder{info: info, entries: entries}, err
	}
	content, err := t.ReadFile(name)
	return &openFile{info: info, Reader: bytes.NewReader(content)}, err
}

func (n *node) info(name string) (fs.FileInfo, error) {
	i := info{name: name, folder: n.folder}
	if n.folder {
		return i, nil
	}
	var err error
	i.size, err = n.size()
	return i, err
}

type entry struct{ n *node }

func (e entry) Name() string               { return e.n.name }
func (e entry) IsDir() bool                { return e.n.folder }
func (e entry) Type() fs.FileMode          { return info{folder: e.n.folder}.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e.n.info(e.n.name) }

type info struct {
	name   string
	folder bool
	size   int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.folder }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openFile struct {
	info fs.FileInfo
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openFolder struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFolder) Close() error               { return nil }
func (f *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.Name(), Err: fmt.Errorf("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.entries)
	} else if len(f.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.entries))
	some := f.entries[:n]
	f.entries = f.entries[n:]
	return some, nil
}

func readAll(blob *object.Blob) (content []byte, err error) {
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // opened read-only
	content = make([]byte, blob.Size)
	_, err = io.ReadFull(reader, content)
	return content, err
}
