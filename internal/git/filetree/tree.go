// Package filetree provides the files of a commit, of a work tree and of a local directory as a tree, as
// source-controller would put them into an artifact.
//
// The content of repositories is untrusted. A tree contains only regular files and directories. Symbolic links are not
// followed, regardless of their target, and devices, pipes and sockets are not opened.
package filetree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// Tree is a file tree whose directories and files are read on first access. It implements fs.FS, fs.ReadFileFS,
// fs.ReadDirFS and fs.StatFS.
type Tree struct {
	root *Node
	// Missing returns the reason why the tree does not contain a path. It may be nil.
	Missing func(name string) error
}

// New returns the tree below a directory.
func New(root *Node) *Tree { return &Tree{root: root} }

// Root returns the root directory.
func (t *Tree) Root() *Node { return t.root }

// Hash returns the Git hash of a file or directory, which identifies its content, or fs.ErrNotExist.
func (t *Tree) Hash(name string) (string, error) {
	n, err := t.find("hash", name)
	if err != nil {
		return "", err
	}
	hash, err := n.Hash()
	return hash.String(), err
}

// Has reports whether the tree contains a file or directory. Submodules without files count.
func (t *Tree) Has(name string) bool {
	n, err := t.lookup("stat", name)
	return err == nil && (n.plain() || n.Mode == Submodule)
}

// ReadFile implements fs.ReadFileFS.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.File == nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	content, err := n.File.Read()
	if errors.As(err, new(*budget.ExceededError)) {
		return nil, budget.TooLarge(name, "the file", budget.TreeFile)
	}
	return content, located("read", name, err)
}

// ReadDir implements fs.ReadDirFS.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.File != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: errors.New("not a directory")}
	}
	nodes, err := n.Entries()
	var entries []fs.DirEntry
	for _, n := range nodes {
		if n.plain() {
			entries = append(entries, entry{n})
		}
	}
	return entries, located("list", name, err)
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
	found, err := t.Stat(name)
	if err != nil {
		return nil, err
	}
	file := &opened{info: found.(info), Reader: bytes.NewReader(nil)}
	if found.IsDir() {
		file.entries, err = t.ReadDir(name)
		return file, err
	}
	content, err := t.ReadFile(name)
	file.Reader = bytes.NewReader(content)
	return file, err
}

// find returns a file or directory.
func (t *Tree) find(op, name string) (*Node, error) {
	n, err := t.lookup(op, name)
	if err == nil && !n.plain() {
		return nil, located(op, name, special(name, n.Mode))
	}
	return n, err
}

// lookup returns the entry of any type at a path whose parents are directories.
func (t *Tree) lookup(op, name string) (*Node, error) {
	if !fs.ValidPath(name) {
		return nil, located(op, name, fs.ErrInvalid)
	}
	at := t.root
	if name == "." {
		return at, nil
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if !at.plain() {
			return nil, located(op, name, special(path.Join(parts[:i]...), at.Mode))
		}
		next, err := at.child(part)
		if err == nil && next == nil {
			if err = syscall.ENOENT; t.Missing != nil {
				err = t.Missing(name)
			}
		}
		if err != nil {
			return nil, located(op, name, err)
		}
		at = next
	}
	return at, nil
}

// located adds the path of a file in the tree to an error.
func located(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var call *fs.PathError
	if errors.As(err, &call) {
		err = call.Err // call.Path is relative to an opened directory
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// ErrSpecial is returned for a path that is or contains a symbolic link, a device, a named pipe or a socket. Such an
// error also matches [fs.ErrNotExist], because artifacts do not contain these files.
var ErrSpecial = errors.New("neither a regular file nor a directory")

// special returns the error for an entry that is neither a regular file nor a directory.
func special(name string, mode fs.FileMode) error {
	if mode == Submodule {
		return syscall.ENOENT
	}
	return &specialError{name, mode}
}

// specialError is returned for a path with an element that is neither a regular file nor a directory.
type specialError struct {
	part string
	mode fs.FileMode
}

func (e *specialError) Error() string {
	what := "special file"
	switch {
	case e.mode&fs.ModeSymlink != 0:
		what = "symbolic link"
	case e.mode&fs.ModeNamedPipe != 0:
		what = "named pipe"
	case e.mode&fs.ModeDevice != 0:
		what = "device"
	case e.mode&fs.ModeSocket != 0:
		what = "socket"
	}
	return fmt.Sprintf("%s is a %s, which source-controller leaves out of artifacts", e.part, what)
}

func (e *specialError) Is(target error) bool { return target == ErrSpecial || target == fs.ErrNotExist }

func (n *Node) info(name string) (i info, err error) {
	i = info{name: name, mode: 0o444}
	if n.File == nil {
		i.mode = fs.ModeDir | 0o555
		return i, nil
	}
	i.size, err = n.File.Size()
	return i, err
}

type entry struct{ n *Node }

func (e entry) Name() string               { return e.n.Name }
func (e entry) IsDir() bool                { return e.n.Mode.IsDir() }
func (e entry) Type() fs.FileMode          { return e.n.Mode }
func (e entry) Info() (fs.FileInfo, error) { return e.n.info(e.n.Name) }

type info struct {
	name string
	mode fs.FileMode
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode  { return i.mode }

// opened is an open file or directory.
type opened struct {
	*bytes.Reader
	info    info
	entries []fs.DirEntry
}

func (f *opened) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *opened) Close() error               { return nil }

// ReadDir implements fs.ReadDirFile.
func (f *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.entries)
	} else if len(f.entries) == 0 {
		return nil, io.EOF
	}
	first, rest := f.entries[:min(n, len(f.entries))], f.entries[min(n, len(f.entries)):]
	f.entries = rest
	return first, nil
}
