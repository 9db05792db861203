// Package cachedir keeps files in the user's cache directory.
package cachedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
)

// Dir is a directory of cached files.
type Dir string

// User returns the directory called name in the user's cache directory.
func User(name string) (Dir, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", hint.Errorf("set HOME or XDG_CACHE_HOME", "finding the cache directory: %w", err)
	}
	return Dir(filepath.Join(cache, "flux", name)), nil
}

// Read returns the content of a file of at most limit bytes. It reads only regular files that belong to the user and that other
// users cannot write to.
func (d Dir) Read(name string, limit int64) (_ []byte, err error) {
	path := filepath.Join(string(d), name)
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := trusted(before); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err := file.Stat(); err != nil || !os.SameFile(before, info) {
		return nil, errors.Join(err, fmt.Errorf("%s: the file was replaced", path))
	}
	return budget.ReadAll(file, path, "the file", limit)
}

// Write writes a file, which other users cannot read, and replaces an existing one atomically.
func (d Dir) Write(name string, content []byte) (err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(string(d), "part-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(d), name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// block is the minimum space that a file takes on disk.
const block = 4 << 10

// Trim removes the oldest files until the remaining files take at most limit bytes. Other processes may remove files
// at the same time.
func (d Dir) Trim(limit int64) {
	var files []fs.FileInfo
	entries, _ := os.ReadDir(string(d))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, file := range files {
		if limit -= max(file.Size(), block); limit < 0 {
			_ = os.Remove(filepath.Join(string(d), file.Name()))
		}
	}
}
