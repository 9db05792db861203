package snapshot

import (
	"context"
	"crypto/sha1" // the length of Git's hashes; it identifies content
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// modulesFile lists the paths and names of submodules.
	modulesFile = ".gitmodules"
	// maxModules is the maximum number of submodules in a tree, and maxModuleDepth the maximum
	// depth of their nesting.
	maxModules     = 500
	maxModuleDepth = 8
	// maxModulesFile is the maximum size of the file with submodules, in bytes.
	maxModulesFile = 1 << 20
)

// SubmoduleError is returned if the clone does not contain a submodule, or not the recorded commit
// of it.
type SubmoduleError struct {
	// Path is the folder of the submodule. Top is the folder of the outermost submodule that
	// contains it, which 'git submodule update' expects.
	Path, Top string
	// Commit is the recorded commit if only the commit is missing, or "" if the submodule is
	// missing.
	Commit string
}

func (e *SubmoduleError) Error() string {
	if e.Commit != "" {
		return fmt.Sprintf("the clone does not have commit %s of submodule %s", e.Commit, e.Path)
	}
	return fmt.Sprintf("the clone does not have submodule %s", e.Path)
}

// Submodules returns a tree with the files of its submodules at the recorded commits, recursively.
// It reads the clones of the submodules in this repository. A tree without submodules is returned
// unchanged.
func (r *Repository) Submodules(ctx context.Context, t *Tree) (*Tree, error) {
	r.modules.mu.Lock()
	defer r.modules.mu.Unlock()
	root, err := grafter{ctx}.tree(r, t.root, "", 0)
	if err != nil {
		return nil, err
	}
	return &Tree{root: root}, nil
}

// grafter adds submodules to trees.
type grafter struct{ ctx context.Context }

// tree adds the submodules of a tree that is at a folder of the work tree.
func (g grafter) tree(r *Repository, root *node, at string, depth int) (*node, error) {
	tree := &Tree{root: root}
	text, err := tree.ReadFile(modulesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil
	}
	if err != nil {
		return nil, err
	}
	modules := config.NewModules()
	if len(text) > maxModulesFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path.Join(at, modulesFile), maxModulesFile)
	}
	if err := modules.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path.Join(at, modulesFile), err)
	}
	if len(modules.Submodules) > maxModules || depth > maxModuleDepth {
		return nil, fmt.Errorf("%s: more than %d submodules, or nested more than %d times", path.Join(at, modulesFile), maxModules, maxModuleDepth)
	}
	for _, name := range slices.Sorted(maps.Keys(modules.Submodules)) {
		if err := g.ctx.Err(); err != nil {
			return nil, err
		}
		folder := modules.Submodules[name].Path
		commit, found, err := tree.linked(folder)
		if err != nil {
			return nil, err
		}
		if !found {
			continue // git also ignores it
		}
		files, err := g.submodule(r, name, path.Join(at, folder), commit, depth)
		if err != nil {
			return nil, err
		}
		if root, err = root.graft(strings.Split(folder, "/"), files); err != nil {
			return nil, err
		}
		tree = &Tree{root: root}
	}
	return root, nil
}

// linked returns the commit that is recorded for the submodule at a path.
func (t *Tree) linked(folder string) (plumbing.Hash, bool, error) {
	if !fs.ValidPath(folder) || folder == "." {
		return plumbing.ZeroHash, false, nil
	}
	parent, err := t.find("read", path.Dir(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return plumbing.ZeroHash, false, nil
	}
	if err != nil {
		return plumbing.ZeroHash, false, err
	}
	if _, err := parent.list(); err != nil {
		return plumbing.ZeroHash, false, err
	}
	read, found := parent.links[path.Base(folder)]
	if !found {
		return plumbing.ZeroHash, false, nil
	}
	commit, err := read()
	return commit, err == nil, err
}

// submodule returns the files of a submodule at a commit.
func (g grafter) submodule(r *Repository, name, at string, commit plumbing.Hash, depth int) (*node, error) {
	module, err := r.modules.open(r, name)
	if errors.Is(err, ErrNoRepository) {
		return nil, &SubmoduleError{Path: at, Top: at}
	}
	if err != nil {
		return nil, fmt.Errorf("opening submodule %s: %w", at, err)
	}
	tree, err := module.At(commit)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, &SubmoduleError{Path: at, Commit: commit.String()}
	}
	if err != nil {
		return nil, fmt.Errorf("reading submodule %s: %w", at, err)
	}
	root, err := g.tree(module, tree.root, at, depth+1)
	var missing *SubmoduleError
	if errors.As(err, &missing) {
		missing.Top = at
	}
	return root, err
}

// modules holds the opened clones of submodules by name.
type modules struct {
	mu     sync.Mutex
	opened map[string]*Repository
}

// open opens the clone of a submodule, which is in the Git directory of the
// repository under its name. The name is untrusted.
func (m *modules) open(r *Repository, name string) (*Repository, error) {
	if known := m.opened[name]; known != nil {
		return known, nil
	}
	if !fs.ValidPath(name) || name == "." || strings.Contains(name, "\\") {
		return nil, fmt.Errorf("invalid name %q in %s", name, modulesFile)
	}
	for _, data := range []string{r.gitDir, commonFolder(r.gitDir)} {
		folder := filepath.Join(data, "modules", filepath.FromSlash(name))
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue
		}
		opened, err := OpenAt(Location{Folder: ".", GitDir: folder})
		if errors.Is(err, ErrNoRepository) {
			continue
		}
		if err != nil {
			return nil, err
		}
		opened.root = ""
		if m.opened == nil {
			m.opened = map[string]*Repository{}
		}
		m.opened[name] = opened
		return opened, nil
	}
	return nil, ErrNoRepository
}

// close closes the clones.
func (m *modules) close() error {
	var errs []error
	for _, module := range m.opened {
		errs = append(errs, module.Close())
	}
	return errors.Join(errs...)
}

// graft returns a copy of a folder with another folder at a path below it.
func (n *node) graft(parts []string, files *node) (*node, error) {
	children, err := n.list()
	if err != nil {
		return nil, err
	}
	var below *node
	kept := slices.DeleteFunc(slices.Clone(children), func(child *node) bool {
		if child.name == parts[0] {
			below = child
		}
		return child.name == parts[0]
	})
	added := &node{name: parts[0], folder: true, load: files.list, hashed: files.identity}
	if len(parts) > 1 {
		if below == nil || !below.folder {
			return nil, fmt.Errorf("submodule %s is not in a folder", strings.Join(parts, "/"))
		}
		if added, err = below.graft(parts[1:], files); err != nil {
			return nil, err
		}
	}
	kept = append(kept, added)
	slices.SortFunc(kept, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return &node{
		name: n.name, folder: true, links: n.links, load: func() ([]*node, error) { return kept, nil },
		hashed: sync.OnceValues(func() (plumbing.Hash, error) { return identityOf(kept) }),
	}, nil
}

// identity returns the hash of a node.
func (n *node) identity() (plumbing.Hash, error) {
	if n.hashed == nil {
		return n.hash, nil
	}
	return n.hashed()
}

// identityOf returns a hash of the entries of a folder with submodules, which has no
// hash in Git.
func identityOf(children []*node) (plumbing.Hash, error) {
	sum := sha1.New() // as above
	for _, child := range children {
		hash, err := child.identity()
		if err != nil {
			return hash, err
		}
		_, _ = fmt.Fprintf(sum, "%q %t %s\n", child.name, child.folder, hash)
	}
	return plumbing.Hash(sum.Sum(nil)), nil
}
