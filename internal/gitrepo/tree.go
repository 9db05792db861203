package gitrepo

import (
	"errors"
	"fmt"
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

// treeWriter writes blobs and trees and notes which ones the server lacks.
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
	there := w.store.HasEncodedObject(hash) == nil
	if there && !w.unsent[hash] {
		return hash, nil
	}
	if !there {
		if _, err := w.store.SetEncodedObject(o); err != nil {
			return hash, fmt.Errorf("storing a Git object: %w", err)
		}
	}
	w.unsent[hash] = true
	w.added = append(w.added, hash)
	return hash, nil
}

// put returns the tree that has the files besides what stands in t. Folders
// that are not concerned are not even read.
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
		if err := w.putFile(next, at, name, here[name]); err != nil {
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
		return &InTheWayError{Path: path.Join(at, name), Mode: e.Mode, Wanted: "file"}
	}
	hash, err := w.blob(content)
	e.Hash = hash
	return err
}

func (w *treeWriter) putFolder(t *object.Tree, at, name string, files map[string][]byte) error {
	e := entry(t, name, filemode.Dir)
	if e.Mode != filemode.Dir {
		return &InTheWayError{Path: path.Join(at, name), Mode: e.Mode, Wanted: "folder"}
	}
	folder := &object.Tree{}
	if !e.Hash.IsZero() {
		var err error
		if folder, err = object.GetTree(w.store, e.Hash); err != nil {
			return fmt.Errorf("reading folder %s: %w", path.Join(at, name), err)
		}
	}
	hash, err := w.put(folder, path.Join(at, name), files)
	e.Hash = hash
	return err
}

// entry returns the entry of a name, a new one where there is none.
func entry(t *object.Tree, name string, mode filemode.FileMode) *object.TreeEntry {
	i := slices.IndexFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == name })
	if i < 0 {
		t.Entries = append(t.Entries, object.TreeEntry{Name: name, Mode: mode})
		i = len(t.Entries) - 1
	}
	return &t.Entries[i]
}

// InTheWayError says that something else stands where a file or a folder is to be.
type InTheWayError struct {
	Path   string
	Mode   filemode.FileMode
	Wanted string
}

func (e *InTheWayError) Error() string {
	kinds := map[filemode.FileMode]string{
		filemode.Dir: "folder", filemode.Symlink: "symbolic link", filemode.Submodule: "submodule",
	}
	kind, ok := kinds[e.Mode]
	if !ok {
		kind = "file"
	}
	return fmt.Sprintf("%q in the repository is a %s where a %s is wanted", e.Path, kind, e.Wanted)
}
