package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// treeWriter writes blobs and trees, and records those that the server lacks.
type treeWriter struct {
	store  *filesystem.Storage
	added  []plumbing.Hash
	unsent map[plumbing.Hash]bool
}

type encodable interface {
	Encode(plumbing.EncodedObject) error
}

func (w *treeWriter) save(o encodable) (plumbing.Hash, error) {
	encoded := w.store.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encoding a Git object: %w", err)
	}
	return w.keep(encoded)
}

func (w *treeWriter) blob(content []byte) (plumbing.Hash, error) {
	encoded := w.store.NewEncodedObject()
	encoded.SetType(plumbing.BlobObject)
	writer, err := encoded.Writer()
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encoding a file: %w", err)
	}
	_, err = writer.Write(content)
	if err := errors.Join(err, writer.Close()); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encoding a file: %w", err)
	}
	return w.keep(encoded)
}

func (w *treeWriter) keep(o plumbing.EncodedObject) (plumbing.Hash, error) {
	hash := o.Hash()
	stored := w.store.HasEncodedObject(hash) == nil
	if stored && !w.unsent[hash] {
		return hash, nil
	}
	if !stored {
		if _, err := w.store.SetEncodedObject(o); err != nil {
			return hash, fmt.Errorf("storing a Git object: %w", err)
		}
	}
	w.unsent[hash] = true
	w.added = append(w.added, hash)
	return hash, nil
}

// put returns the tree t with the given files. It removes files whose content is nil. It reads only
// the folders of the files.
func (w *treeWriter) put(t *object.Tree, at string, files map[string][]byte) (plumbing.Hash, error) {
	here := map[string][]byte{}
	below := map[string]map[string][]byte{}
	for name, content := range files {
		folder, rest, nested := strings.Cut(name, "/")
		if !nested {
			here[name] = content
			continue
		}
		if below[folder] == nil {
			below[folder] = map[string][]byte{}
		}
		below[folder][rest] = content
	}
	next := &object.Tree{Entries: slices.Clone(t.Entries)}
	for _, name := range slices.Sorted(maps.Keys(here)) {
		put := w.putFile
		if here[name] == nil {
			put = w.removeFile
		}
		if err := put(next, at, name, here[name]); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if err := w.putFolder(next, at, name, below[name]); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	sort.Sort(object.TreeEntrySorter(next.Entries))
	return w.save(next)
}

func (w *treeWriter) putFile(t *object.Tree, at, name string, content []byte) error {
	e := entry(t, name, filemode.Regular)
	if e.Mode != filemode.Regular && e.Mode != filemode.Executable {
		return &PathConflictError{Path: path.Join(at, name), Mode: e.Mode, Wanted: "file"}
	}
	hash, err := w.blob(content)
	e.Hash = hash
	return err
}

func (w *treeWriter) removeFile(t *object.Tree, at, name string, _ []byte) error {
	i := slices.IndexFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == name && e.Mode != filemode.Dir })
	if i < 0 {
		return &fs.PathError{Op: "remove", Path: path.Join(at, name), Err: fs.ErrNotExist}
	}
	t.Entries = slices.Delete(t.Entries, i, i+1)
	return nil
}

func (w *treeWriter) putFolder(t *object.Tree, at, name string, files map[string][]byte) error {
	e := entry(t, name, filemode.Dir)
	if e.Mode != filemode.Dir {
		return &PathConflictError{Path: path.Join(at, name), Mode: e.Mode, Wanted: "directory"}
	}
	folder := &object.Tree{}
	if !e.Hash.IsZero() {
		var err error
		if folder, err = object.GetTree(w.store, e.Hash); err != nil {
			return fmt.Errorf("reading directory %s: %w", path.Join(at, name), err)
		}
	}
	hash, err := w.put(folder, path.Join(at, name), files)
	e.Hash = hash
	if hash == plumbing.ComputeHash(plumbing.TreeObject, nil) { // Git does not store empty folders
		t.Entries = slices.DeleteFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == name })
	}
	return err
}

// entry returns the entry of a name, and adds it if it does not exist.
func entry(t *object.Tree, name string, mode filemode.FileMode) *object.TreeEntry {
	i := slices.IndexFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == name })
	if i < 0 {
		t.Entries = append(t.Entries, object.TreeEntry{Name: name, Mode: mode})
		i = len(t.Entries) - 1
	}
	return &t.Entries[i]
}

// PathConflictError is returned if an element of a path is an entry of another type.
type PathConflictError struct {
	Path   string
	Mode   filemode.FileMode
	Wanted string
}

func (e *PathConflictError) Error() string {
	kinds := map[filemode.FileMode]string{
		filemode.Dir: "directory", filemode.Symlink: "symbolic link", filemode.Submodule: "submodule",
	}
	kind, ok := kinds[e.Mode]
	if !ok {
		kind = "file"
	}
	return fmt.Sprintf("%q in the repository is a %s, not a %s", e.Path, kind, e.Wanted)
}
