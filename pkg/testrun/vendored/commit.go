package vendored

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

// commit moves the staged files to their places, then the index, and removes the files that are no
// longer referenced. No file is ever incomplete, and the index contains the digests of all files.
func (f *Fetcher) commit() error {
	text, err := json.MarshalIndent(f.next, "", "  ")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.next.Files)) {
		if err := f.move(name); err != nil {
			return err
		}
	}
	if err := f.root.WriteFile(path.Join(f.staging, indexFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := f.move(indexFile); err != nil {
		return err
	}
	return f.clean()
}

// move moves a file from the staging directory, if it exists.
func (f *Fetcher) move(name string) error {
	from := path.Join(f.staging, name)
	if _, err := f.root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return f.root.Rename(from, name)
}

// clean removes from the source directories all files that are not in the index, empty directories, and
// the leftovers of interrupted commands.
func (f *Fetcher) clean() error {
	var folders []string
	for _, top := range kindFolders {
		err := fs.WalkDir(f.root.FS(), top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case entry.IsDir():
				folders = append(folders, name)
			case f.next.Files[name] == "":
				return f.root.Remove(name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Backward(folders) {
		if entries, err := fs.ReadDir(f.root.FS(), name); err == nil && len(entries) == 0 {
			if err := f.root.Remove(name); err != nil {
				return err
			}
		}
	}
	entries, err := fs.ReadDir(f.root.FS(), ".")
	for _, e := range entries {
		if staged([]os.DirEntry{e}) && e.Name() != f.staging {
			err = errors.Join(err, f.root.RemoveAll(e.Name()))
		}
	}
	return err
}
