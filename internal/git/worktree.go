package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// ErrBare is returned if the work tree of a bare repository is requested.
var ErrBare = errors.New("the repository is bare and has no work tree")

// WorkTree returns the tree that a commit of all files would contain: tracked files, and untracked files that are
// not ignored. Contents are read on first access.
func (c *Clone) WorkTree(ctx context.Context) (*filetree.Tree, error) {
	if c.root == "" {
		return nil, ErrBare
	}
	c.objects.mu.Lock()
	index, err := c.objects.store.Index()
	c.objects.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("reading the Git index: %w", err)
	}
	w := &walk{ctx: ctx, clone: c, tracked: map[string]bool{}, hidden: map[string]map[string]*filetree.Node{}}
	var listed int
	for _, entry := range index.Entries {
		name := path.Clean(entry.Name)
		for at := name; at != "."; at = path.Dir(at) {
			w.tracked[at] = true
		}
		n := c.objects.node(path.Base(name), entry.Mode, entry.Hash, &listed)
		if n.Mode == filetree.Submodule {
			n.Identity = func() (plumbing.Hash, error) { return c.checkedOut(name, entry.Hash) }
		}
		if entry.SkipWorktree || n.Mode == filetree.Submodule {
			w.hide(name, n)
		}
	}
	var patterns []gitignore.Pattern
	if text, err := util.ReadFile(c.objects.store.files.Filesystem(), "info/exclude"); err == nil {
		patterns = parsePatterns(text, nil)
	}
	root, err := w.directory(".", filetree.Directory(c.root).Root(), patterns)
	if err != nil {
		return nil, fmt.Errorf("reading the work tree: %w", err)
	}
	return filetree.New(root), nil
}

// checkedOut returns the commit that is checked out in a submodule, or the commit in the index if the submodule is
// not checked out.
func (c *Clone) checkedOut(name string, commit plumbing.Hash) (plumbing.Hash, error) {
	folder := filepath.Join(c.root, filepath.FromSlash(name))
	if _, err := gitDirectory(filepath.Join(folder, ".git")); errors.Is(err, ErrNoRepository) {
		return commit, nil
	}
	module, err := Open(folder)
	if err != nil {
		return commit, fmt.Errorf("opening submodule %s: %w", name, err)
	}
	head, err := module.Commit(Revision{Name: "HEAD"})
	return head, errors.Join(err, module.Close())
}

// Committed returns the commit of HEAD, and whether the work tree contains exactly the files of this commit.
func (c *Clone) Committed(ctx context.Context) (head plumbing.Hash, clean bool) {
	head, err := c.Commit(Revision{Name: "HEAD"})
	if err != nil {
		return head, false
	}
	committed, treeErr := c.At(head)
	work, workErr := c.WorkTree(ctx)
	if treeErr != nil || workErr != nil {
		return head, false
	}
	was, wasErr := committed.Hash(".")
	is, isErr := work.Hash(".")
	return head, wasErr == nil && isErr == nil && was == is
}

// walk selects the files of a work tree that Git tracks or would add.
type walk struct {
	ctx     context.Context // walk is used for a single call
	clone   *Clone
	tracked map[string]bool
	// hidden holds index entries, by directory and name, that are in the tree regardless of the files on disk:
	// submodules, and files that a sparse checkout excludes. A parent directory of such entries has a nil node.
	hidden map[string]map[string]*filetree.Node
}

// hide adds an entry of the index.
func (w *walk) hide(name string, n *filetree.Node) {
	for ; name != "."; name, n = path.Dir(name), nil {
		folder, base := path.Split(name)
		folder = path.Clean(folder)
		if w.hidden[folder] == nil {
			w.hidden[folder] = map[string]*filetree.Node{}
		}
		if _, known := w.hidden[folder][base]; known {
			return
		}
		w.hidden[folder][base] = n
	}
}

// directory returns the entries of a directory that Git tracks or would add. There may be none.
func (w *walk) directory(name string, onDisk *filetree.Node, patterns []gitignore.Pattern) (*filetree.Node, error) {
	if w.ctx.Err() != nil {
		return nil, context.Cause(w.ctx)
	}
	entries, err := onDisk.Entries()
	if err != nil {
		return nil, err
	}
	if i := find(entries, ".gitignore"); i >= 0 && entries[i].File != nil {
		var domain []string
		if name != "." {
			domain = strings.Split(name, "/")
		}
		if text, err := entries[i].File.Read(); err == nil {
			patterns = append(slices.Clip(patterns), parsePatterns(text, domain)...)
		}
	}
	ignored := gitignore.NewMatcher(patterns)
	var kept []*filetree.Node
	for _, e := range entries {
		below := path.Join(name, e.Name)
		if e.Name == ".git" || !w.tracked[below] && ignored.Match(strings.Split(below, "/"), e.Mode.IsDir()) {
			continue
		}
		n, err := w.entry(below, e, patterns)
		if err != nil {
			return nil, err
		}
		if n != nil {
			kept = append(kept, n)
		}
	}
	for base, n := range w.hidden[name] {
		if find(kept, base) >= 0 {
			continue
		}
		if n == nil {
			if n, err = w.directory(path.Join(name, base), &filetree.Node{Name: base}, patterns); err != nil {
				return nil, err
			}
		}
		kept = append(kept, n)
	}
	return &filetree.Node{Name: path.Base(name), Mode: fs.ModeDir, List: func() ([]*filetree.Node, error) { return kept, nil }}, nil
}

func find(entries []*filetree.Node, name string) int {
	return slices.IndexFunc(entries, func(n *filetree.Node) bool { return n.Name == name })
}

// entry returns nil for entries that Git does not add: empty directories, nested repositories and sockets.
func (w *walk) entry(name string, e *filetree.Node, patterns []gitignore.Pattern) (*filetree.Node, error) {
	switch {
	case e.File != nil:
		return &filetree.Node{Name: e.Name, File: &workFile{File: e.File, contents: &w.clone.objects.contents}}, nil
	case e.Mode == fs.ModeSymlink:
		return e, nil
	case !e.Mode.IsDir():
		return nil, nil
	}
	if n := w.hidden[path.Dir(name)][e.Name]; n != nil && n.Mode == filetree.Submodule {
		return n, nil
	}
	below, err := e.Entries()
	if err != nil || find(below, ".git") >= 0 {
		return nil, err
	}
	n, err := w.directory(name, e, patterns)
	if err != nil {
		return nil, err
	}
	if below, err = n.Entries(); len(below) == 0 {
		return nil, err
	}
	return n, nil
}

func parsePatterns(text []byte, domain []string) []gitignore.Pattern {
	var found []gitignore.Pattern
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, gitignore.ParsePattern(line, domain))
		}
	}
	return found
}

// workFile is a file of a work tree. Small files are read once, because most are both hashed and read.
type workFile struct {
	filetree.File
	contents *contents

	once sync.Once
	sum  plumbing.Hash
	err  error
}

// Read implements filetree.File.
func (f *workFile) Read() ([]byte, error) {
	if size, err := f.Size(); err != nil || size >= cacheMax {
		return f.File.Read()
	}
	sum, err := f.Hash()
	if err != nil {
		return nil, err
	}
	if content, ok := f.contents.of(sum); ok {
		return content, nil
	}
	return f.File.Read()
}

// Hash implements filetree.File. It does not load large files into memory.
func (f *workFile) Hash() (plumbing.Hash, error) {
	f.once.Do(func() {
		var size int64
		if size, f.err = f.Size(); f.err != nil || size >= cacheMax {
			f.sum, f.err = f.File.Hash()
			return
		}
		var content []byte
		if content, f.err = f.File.Read(); f.err == nil {
			f.sum = plumbing.ComputeHash(plumbing.BlobObject, content)
			f.contents.add(f.sum, content)
		}
	})
	return f.sum, f.err
}
