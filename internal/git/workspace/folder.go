// Package workspace reads local folders that are used as the source of a Kustomization, a
// HelmRelease or a chart.
//
// The content of repositories is untrusted. The package reads only files that source-controller
// would put into an artifact: regular files and directories below the root. It does not follow
// symbolic links and does not open devices, pipes and sockets, regardless of their target.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/fluxkit/flux/internal/budget"
)

// ErrSpecial is returned for a path that is or contains a symbolic link, a device, a named pipe or
// a socket. Such an error is also [fs.ErrNotExist], since these files are not in the artifact of a
// source.
var ErrSpecial = errors.New("neither a regular file nor a directory")

// specialError is returned for a path with an element that is neither a regular file nor a
// directory.
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

// Folder returns the tree of a directory. The directory itself may be a symbolic link. It is opened
// on the first read.
func Folder(root string) fs.FS {
	return &folder{
		open: sync.OnceValues(func() (*os.Root, error) { return os.OpenRoot(root) }),
		safe: map[string]bool{".": true},
	}
}

type folder struct {
	open func() (*os.Root, error)

	mu sync.Mutex
	// safe holds the paths whose elements are all known to be directories.
	safe map[string]bool
	// parent is the directory at, which contains the last file that was read: the next file is
	// often in the same directory.
	parent *os.Root
	at     string
}

var (
	_ fs.ReadFileFS = (*folder)(nil)
	_ fs.ReadDirFS  = (*folder)(nil)
	_ fs.StatFS     = (*folder)(nil)
)

// Open implements [fs.FS].
func (f *folder) Open(name string) (fs.File, error) {
	root, _, err := f.check("open", name)
	if err != nil {
		return nil, err
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	return opened{file}, nil
}

// Stat implements [fs.StatFS].
func (f *folder) Stat(name string) (fs.FileInfo, error) {
	_, info, err := f.check("stat", name)
	return info, err
}

// ReadFile implements [fs.ReadFileFS].
func (f *folder) ReadFile(name string) ([]byte, error) {
	root, err := f.ancestors("open", name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parent == nil || f.at != path.Dir(name) {
		parent, err := root.OpenRoot(path.Dir(name))
		if err != nil {
			return nil, located("open", name, err)
		}
		if f.parent != nil {
			_ = f.parent.Close() // opened read-only
		}
		f.parent, f.at = parent, path.Dir(name)
	}
	info, err := lstat(f.parent, "open", name, path.Base(name))
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	if info.Size() > budget.TreeFile {
		return nil, budget.TooLarge(name, "the file", budget.TreeFile)
	}
	content, err := f.parent.ReadFile(path.Base(name))
	return content, located("read", name, err)
}

// ReadDir implements [fs.ReadDirFS]. It returns the entries sorted by name and excludes those that
// cannot be opened.
func (f *folder) ReadDir(name string) ([]fs.DirEntry, error) {
	root, _, err := f.check("open", name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	return regular(entries), err
}

// check checks each element of a path.
func (f *folder) check(op, name string) (*os.Root, fs.FileInfo, error) {
	root, err := f.ancestors(op, name)
	if err != nil {
		return nil, nil, err
	}
	info, err := lstat(root, op, name, name)
	return root, info, err
}

// ancestors checks each element of a path except the last one. It does not check directories again,
// since the tree does not change during a command.
func (f *folder) ancestors(op, name string) (*os.Root, error) {
	if !fs.ValidPath(name) {
		return nil, located(op, name, fs.ErrInvalid)
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	return root, located(op, name, f.directories(root, path.Dir(name)))
}

// lstat returns the file base of a directory, whose name in the tree is name.
func lstat(directory *os.Root, op, name, base string) (fs.FileInfo, error) {
	info, err := directory.Lstat(base)
	if err == nil && !plain(info.Mode()) {
		err = &specialError{name, info.Mode()}
	}
	return info, located(op, name, err)
}

// located returns an error with the path of a file in the tree.
func located(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var call *fs.PathError
	if errors.As(err, &call) {
		err = call.Err // its path is the one of the system call
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// directories returns an error for the first element of a path that is not a directory.
func (f *folder) directories(root *os.Root, name string) error {
	f.mu.Lock()
	known := f.safe[name]
	f.mu.Unlock()
	if known {
		return nil
	}
	if err := f.directories(root, path.Dir(name)); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return err
	case !plain(info.Mode()):
		return &specialError{name, info.Mode()}
	case !info.IsDir():
		return fs.ErrNotExist
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.safe[name] = true
	return nil
}

func plain(mode fs.FileMode) bool { return mode.IsRegular() || mode.IsDir() }

func regular(entries []fs.DirEntry) []fs.DirEntry {
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !plain(e.Type()) })
}

// opened is an open file whose directory entries are limited to those of the tree.
type opened struct{ *os.File }

// ReadDir implements [fs.ReadDirFile].
func (o opened) ReadDir(n int) ([]fs.DirEntry, error) {
	for {
		entries, err := o.File.ReadDir(n)
		if kept := regular(entries); len(kept) > 0 || n <= 0 || err != nil {
			return kept, err
		}
	}
}
