package sourcetree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// unzippedMax is the maximum unpacked size of an archive, including its headers and the entries
// that Archive excludes.
const unzippedMax = 512 << 20

// Archive unpacks a gzipped tar file into memory, such as the artifact of a source.
func Archive(r io.Reader) (*Tree, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unzipping the archive: %w", err)
	}
	files := map[string][]byte{}
	limits := budget.New(budget.Default())
	// Excluded entries are decompressed as well, so they count.
	bounded := &io.LimitedReader{R: unzipped, N: unzippedMax}
	for archive := tar.NewReader(bounded); ; {
		header, err := archive.Next()
		if bounded.N <= 0 {
			err = &budget.ExceededError{Fact: "the archive unpacks to more than " + budget.Size(unzippedMax)}
		}
		if errors.Is(err, io.EOF) {
			if err := withoutConflicts(files); err != nil {
				return nil, fmt.Errorf("unpacking the archive: %w", err)
			}
			return NewTree(files), nil
		}
		if err == nil {
			err = limits.Entry(header.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking the archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue // directories follow from their files; source-controller puts no links into artifacts
		}
		if err := limits.File(header.Name, header.Size); err != nil {
			return nil, fmt.Errorf("unpacking the archive: %w", err)
		}
		content := make([]byte, header.Size)
		if _, err := io.ReadFull(archive, content); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
		files[Clean(header.Name)] = content
	}
}

// withoutConflicts returns an error if a path is both a file and a folder, since no controller can
// unpack such an archive.
func withoutConflicts(files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if _, both := files[folder]; both {
				return fmt.Errorf("%q is a file and a directory", folder)
			}
		}
	}
	if _, root := files["."]; root {
		return errors.New("its root is a file")
	}
	return nil
}

// Tree is a tree of files in memory.
type Tree struct {
	files   map[string][]byte
	folders folders
}

// NewTree returns a tree of files from their contents by slash-separated path.
func NewTree(files map[string][]byte) *Tree {
	return &Tree{files: files, folders: foldersOf(maps.Keys(files), func(name string, folder bool) fs.DirEntry {
		return fs.FileInfoToDirEntry(treeInfo{name: path.Base(name), size: int64(len(files[name])), folder: folder})
	})}
}

func (t *Tree) info(name string) (treeInfo, error) {
	if content, ok := t.files[name]; ok {
		return treeInfo{name: path.Base(name), size: int64(len(content))}, nil
	}
	if _, ok := t.folders[name]; ok {
		return treeInfo{name: path.Base(name), folder: true}, nil
	}
	return treeInfo{}, fs.ErrNotExist
}

// Open implements fs.FS.
func (t *Tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info, err := t.info(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &treeFile{Reader: bytes.NewReader(t.files[name]), info: info, entries: t.folders[name]}, nil
}

// Stat implements fs.StatFS.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	info, err := t.info(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info, nil
}

// ReadFile implements fs.ReadFileFS.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	if content, ok := t.files[name]; ok {
		return slices.Clone(content), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

type treeInfo struct {
	name   string
	size   int64
	folder bool
}

// Name implements fs.FileInfo.
func (i treeInfo) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i treeInfo) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i treeInfo) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime implements fs.FileInfo.
func (i treeInfo) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i treeInfo) IsDir() bool { return i.folder }

// Sys implements fs.FileInfo.
func (i treeInfo) Sys() any { return nil }

type treeFile struct {
	*bytes.Reader
	info    treeInfo
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (f *treeFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements fs.File.
func (f *treeFile) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (f *treeFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		all := f.entries
		f.entries = nil
		return all, nil
	}
	if len(f.entries) == 0 {
		return nil, io.EOF
	}
	first := f.entries[:min(n, len(f.entries))]
	f.entries = f.entries[len(first):]
	return first, nil
}
