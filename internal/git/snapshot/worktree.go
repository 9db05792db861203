package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/fluxkit/flux/internal/git/workspace"
)

// ErrBare is returned for the work tree of a bare repository.
var ErrBare = errors.New("the repository is bare and has no work tree")

// WorkTree returns the tree that a commit of all files would have: tracked files, and untracked
// files that are not ignored. Contents are read on first access.
func (r *Repository) WorkTree(ctx context.Context) (*Tree, error) {
	if r.root == "" {
		return nil, ErrBare
	}
	w := &walk{ctx: ctx, repository: r, root: r.root, tree: workspace.Folder(r.root), tracked: map[string]bool{}, skipped: map[string]map[string]*node{}, links: map[string]map[string]func() (plumbing.Hash, error){}}
	r.mu.Lock()
	index, err := r.git.Storer.Index()
	r.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("reading the Git index: %w", err)
	}
	for _, entry := range index.Entries {
		for name := path.Clean(entry.Name); name != "."; name = path.Dir(name) {
			w.tracked[name] = true
		}
		if entry.Mode == filemode.Submodule {
			w.link(path.Clean(entry.Name), entry.Hash)
		}
		if entry.SkipWorktree {
			w.skip(entry)
		}
	}
	var patterns []gitignore.Pattern
	if text, err := util.ReadFile(r.objects.Filesystem(), "info/exclude"); err == nil {
		patterns = parsePatterns(text, nil)
	}
	entries, err := w.list(".")
	if err != nil {
		return nil, fmt.Errorf("reading the work tree: %w", err)
	}
	root, err := w.folder(".", entries, patterns)
	if err != nil {
		return nil, fmt.Errorf("reading the work tree: %w", err)
	}
	return &Tree{root: root}, nil
}

// Committed returns the commit of HEAD, and whether the work tree has exactly its files.
func (r *Repository) Committed(ctx context.Context) (head plumbing.Hash, clean bool) {
	head, err := r.Commit("HEAD")
	if err != nil {
		return head, false
	}
	tree, treeErr := r.At(head)
	work, workErr := r.WorkTree(ctx)
	if treeErr != nil || workErr != nil {
		return head, false
	}
	was, wasErr := tree.Hash(".")
	is, isErr := work.Hash(".")
	return head, wasErr == nil && isErr == nil && was == is
}

type walk struct {
	ctx        context.Context
	repository *Repository
	root       string
	tree       fs.FS
	tracked    map[string]bool
	// skipped holds the files that a sparse checkout excludes, by folder and name. A folder with
	// such files further below has a nil map.
	skipped map[string]map[string]*node
	// links holds the submodules of folders by name.
	links map[string]map[string]func() (plumbing.Hash, error)
}

// link adds a submodule: the commit that is checked out in it or, if none is, the commit in the
// index.
func (w *walk) link(name string, commit plumbing.Hash) {
	folder := path.Dir(name)
	if w.links[folder] == nil {
		w.links[folder] = map[string]func() (plumbing.Hash, error){}
	}
	w.links[folder][path.Base(name)] = func() (plumbing.Hash, error) {
		if _, err := os.Lstat(filepath.Join(w.root, name, ".git")); err != nil {
			return commit, nil
		}
		module, err := Open(filepath.Join(w.root, name))
		if err != nil {
			return commit, fmt.Errorf("opening submodule %s: %w", name, err)
		}
		head, err := module.Commit("HEAD")
		return head, errors.Join(err, module.Close())
	}
}

// skip adds an entry of the index that is not checked out.
func (w *walk) skip(entry *index.Entry) {
	name := path.Clean(entry.Name)
	n := &node{name: path.Base(name), mode: func() (filemode.FileMode, error) { return entry.Mode, nil }, hash: entry.Hash}
	switch entry.Mode {
	case filemode.Dir:
		n = w.repository.folder(path.Base(name), entry.Hash)
	case filemode.Submodule:
		return
	case filemode.Symlink:
	default:
		n.size = func() (int64, error) { return w.repository.size(entry.Hash) }
		n.read = func() ([]byte, error) { return w.repository.blob(entry.Hash) }
	}
	n.hashed = func() (plumbing.Hash, error) { return entry.Hash, nil }
	for ; name != "."; name, n = path.Dir(name), nil {
		folder := path.Dir(name)
		if w.skipped[folder] == nil {
			w.skipped[folder] = map[string]*node{}
		}
		if _, known := w.skipped[folder][path.Base(name)]; known {
			return
		}
		w.skipped[folder][path.Base(name)] = n
	}
}

// missing returns the entries of a folder that are not on disk.
func (w *walk) missing(name string, present []*node, patterns []gitignore.Pattern) ([]*node, error) {
	var found []*node
	for _, base := range slices.Sorted(maps.Keys(w.skipped[name])) {
		if slices.ContainsFunc(present, func(n *node) bool { return n.name == base }) {
			continue
		}
		n := w.skipped[name][base]
		if n == nil {
			entries, err := w.list(path.Join(name, base))
			if err != nil {
				return nil, err
			}
			if n, err = w.folder(path.Join(name, base), entries, patterns); err != nil {
				return nil, err
			}
		}
		found = append(found, n)
	}
	return found, nil
}

// patterns reads an ignore file, if it exists.
func (w *walk) patterns(file string, domain []string) []gitignore.Pattern {
	text, err := fs.ReadFile(w.tree, file)
	if err != nil {
		return nil
	}
	return parsePatterns(text, domain)
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

// list returns the entries of a folder on disk, which may not exist if all its files are skipped.
func (w *walk) list(name string) ([]fs.DirEntry, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(w.root, name))
	if errors.Is(err, fs.ErrNotExist) && w.skipped[name] != nil {
		return nil, nil
	}
	return entries, err
}

// has reports whether a folder has an entry.
func has(entries []fs.DirEntry, name string) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

func (w *walk) folder(name string, entries []fs.DirEntry, patterns []gitignore.Pattern) (*node, error) {
	var domain []string
	if name != "." {
		domain = strings.Split(name, "/")
	}
	if has(entries, ".gitignore") {
		patterns = append(slices.Clip(patterns), w.patterns(path.Join(name, ".gitignore"), domain)...)
	}
	ignored := gitignore.NewMatcher(patterns)
	folder := &node{name: path.Base(name), folder: true, links: w.links[name]}
	var children, listed []*node
	for _, e := range entries {
		below := path.Join(name, e.Name())
		if e.Name() == ".git" || !w.tracked[below] && ignored.Match(strings.Split(below, "/"), e.IsDir()) {
			continue
		}
		child, err := w.entry(below, e, patterns)
		if err != nil {
			return nil, err
		}
		if child == nil {
			continue
		}
		children = append(children, child)
		if child.folder || child.read != nil {
			listed = append(listed, child)
		}
	}
	missing, err := w.missing(name, children, patterns)
	if err != nil {
		return nil, err
	}
	children = append(children, missing...)
	for _, child := range missing {
		if child.folder || child.read != nil {
			listed = append(listed, child)
		}
	}
	folder.load = func() ([]*node, error) { return listed, nil }
	folder.hashed = sync.OnceValues(func() (plumbing.Hash, error) { return hashFolder(children) })
	folder.children = children
	return folder, nil
}

// entry returns nil for entries that Git does not add: empty folders, nested repositories and
// sockets.
func (w *walk) entry(name string, e fs.DirEntry, patterns []gitignore.Pattern) (*node, error) {
	onDisk := filepath.Join(w.root, name)
	switch {
	case e.IsDir():
		entries, err := w.list(name)
		if err != nil || has(entries, ".git") {
			return nil, err
		}
		folder, err := w.folder(name, entries, patterns)
		if err != nil || len(folder.children) == 0 {
			return nil, err
		}
		return folder, nil
	case e.Type()&fs.ModeSymlink != 0:
		return &node{name: e.Name(), hashed: func() (plumbing.Hash, error) {
			target, err := os.Readlink(onDisk)
			return plumbing.ComputeHash(plumbing.BlobObject, []byte(filepath.ToSlash(target))), err
		}}, nil
	case !e.Type().IsRegular():
		return nil, nil
	}
	file := &workFile{walk: w, name: name, entry: e}
	return &node{name: e.Name(), mode: file.mode, size: file.size, read: file.read, hashed: sync.OnceValues(file.hash)}, nil
}

// workFile is a file of a work tree.
type workFile struct {
	walk  *walk
	name  string
	entry fs.DirEntry
	// once reads a small file, and computes sum.
	once sync.Once
	sum  plumbing.Hash
	err  error
}

func (f *workFile) size() (int64, error) {
	info, err := f.entry.Info()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *workFile) mode() (filemode.FileMode, error) {
	info, err := f.entry.Info()
	if err == nil && info.Mode()&0o100 != 0 {
		return filemode.Executable, nil
	}
	return filemode.Regular, err
}

// small reads a small file, most of which are hashed and read. It returns false for a large file.
func (f *workFile) small() (bool, error) {
	if size, err := f.size(); err != nil || size >= cacheMax {
		return false, err
	}
	f.once.Do(func() {
		var content []byte
		if content, f.err = fs.ReadFile(f.walk.tree, f.name); f.err == nil {
			f.sum = plumbing.ComputeHash(plumbing.BlobObject, content)
			f.walk.repository.contents.add(f.sum, content)
		}
	})
	return true, f.err
}

func (f *workFile) read() ([]byte, error) {
	small, err := f.small()
	if err != nil {
		return nil, err
	}
	if small {
		if content, ok := f.walk.repository.contents.of(f.sum); ok {
			return content, nil
		}
	}
	return fs.ReadFile(f.walk.tree, f.name)
}

// hash returns the hash of the blob with the content. A large file is never in memory.
func (f *workFile) hash() (plumbing.Hash, error) {
	if small, err := f.small(); small || err != nil {
		return f.sum, err
	}
	size, err := f.size()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	file, err := f.walk.tree.Open(f.name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer func() { _ = file.Close() }() // opened read-only
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	n, err := io.Copy(hasher, file)
	if err == nil && n != size {
		err = fmt.Errorf("%s has changed while it was read", f.name)
	}
	return hasher.Sum(), err
}

// treeMode returns the mode that the node has in a tree object.
func (n *node) treeMode() (filemode.FileMode, error) {
	switch {
	case n.folder:
		return filemode.Dir, nil
	case n.read == nil:
		return filemode.Symlink, nil
	}
	return n.mode()
}

// hashFolder returns the hash of the tree object that Git would create.
func hashFolder(children []*node) (plumbing.Hash, error) {
	sorted := slices.Clone(children)
	key := func(n *node) string {
		if n.folder {
			return n.name + "/"
		}
		return n.name
	}
	slices.SortFunc(sorted, func(a, b *node) int { return strings.Compare(key(a), key(b)) })
	var text []byte
	for _, child := range sorted {
		hash, err := child.hashed()
		if err != nil {
			return hash, err
		}
		mode, err := child.treeMode()
		if err != nil {
			return hash, err
		}
		text = fmt.Appendf(text, "%o %s\x00", uint32(mode), child.name)
		text = append(text, hash[:]...)
	}
	return plumbing.ComputeHash(plumbing.TreeObject, text), nil
}
