// Package workspace reads folders on disk that stand for the source of a
// Kustomization, a HelmRelease or a chart.
//
// Repositories are written by others. What is read of them is what
// source-controller would put into an artifact: regular files and directories
// below the root. Symbolic links are not followed, and devices, pipes and
// sockets are not opened, wherever they point.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
)

// ErrSpecial is returned for a path that leads to or through a symbolic link, a
// device, a named pipe or a socket. Such an error is also [fs.ErrNotExist], as
// these files do not exist in the artifact of a source.
var ErrSpecial = errors.New("neither a regular file nor a directory")

// specialError is returned for a path with a part that is neither a regular file nor a directory.
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

// Folder returns the tree below a directory. The directory itself may be a
// symbolic link; it is opened when the tree is first read.
func Folder(root string) fs.FS {
	return &folder{
		open: sync.OnceValues(func() (*os.Root, error) { return os.OpenRoot(root) }),
		safe: map[string]bool{".": true},
	}
}

type folder struct {
	open func() (*os.Root, error)

	mu sync.Mutex
	// safe are directories of which every element is known to be a directory.
	safe map[string]bool
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
	root, info, err := f.check("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	return root.ReadFile(name)
}

// ReadDir implements [fs.ReadDirFS]: the entries by name, without those that
// cannot be opened.
func (f *folder) ReadDir(name string) ([]fs.DirEntry, error) {
	root, _, err := f.check("open", name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	return regular(entries), err
}

// check looks at every element of a path. Elements that were directories
// before are not checked again: the tree does not change during a command.
func (f *folder) check(op, name string) (*os.Root, fs.FileInfo, error) {
	fail := func(err error) (*os.Root, fs.FileInfo, error) {
		var located *fs.PathError
		if errors.As(err, &located) {
			err = located.Err // which names the path as the system call had it
		}
		return nil, nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	root, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	if err := f.directories(root, path.Dir(name)); err != nil {
		return fail(err)
	}
	info, err := root.Lstat(name)
	if err != nil {
		return fail(err)
	}
	if !plain(info.Mode()) {
		return fail(&specialError{name, info.Mode()})
	}
	return root, info, nil
}

// directories reports the first element of a path that is not a directory.
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

// opened is an open file whose directory entries are those of the tree.
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
