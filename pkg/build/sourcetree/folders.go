package sourcetree

import (
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
)

// folders holds the entries of all folders of a tree, sorted by name.
type folders map[string][]fs.DirEntry

// foldersOf returns the folders that contain files. The function entry returns the entry of a file
// or folder.
func foldersOf(files iter.Seq[string], entry func(name string, folder bool) fs.DirEntry) folders {
	all := folders{".": nil}
	for name := range files {
		all.add(name, false, entry)
	}
	for _, entries := range all {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return all
}

// add adds an entry to its folder, and each new folder to its parent.
func (f folders) add(name string, folder bool, entry func(name string, folder bool) fs.DirEntry) {
	parent := path.Dir(name)
	_, known := f[parent]
	f[parent] = append(f[parent], entry(name, folder))
	if !known {
		f.add(parent, true, entry)
	}
}
