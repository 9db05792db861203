package filetree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// modulesFile lists the paths, names and addresses of submodules.
	modulesFile = ".gitmodules"
	// maxModules is the maximum number of submodules in a tree, and maxModuleDepth the maximum depth of their nesting,
	// as in go-git.
	maxModules     = 500
	maxModuleDepth = 10
	// maxModulesFile is the maximum size of the file with submodules, in bytes.
	maxModulesFile = 1 << 20
)

// Module is a submodule that both .gitmodules and the tree contain. Its name and URL are untrusted.
type Module struct {
	Name, URL string
	// Path is the directory of the submodule. Top is the directory of the outermost submodule that contains it, or its
	// own.
	Path, Top string
	Commit    plumbing.Hash
}

// Opener returns the files of a submodule, and the function that opens its own submodules.
type Opener func(m Module) (*Tree, Opener, error)

// WithModules returns a tree with the files of its submodules, recursively. A tree without submodules is returned
// unchanged.
func (t *Tree) WithModules(ctx context.Context, open Opener) (*Tree, error) {
	g := &grafter{ctx: ctx}
	root, err := g.add(t.root, Module{}, 0, open)
	return New(root), err
}

// grafter adds submodules to trees.
type grafter struct {
	ctx   context.Context // grafter is used for a single call
	added int
}

// add returns root with its nested submodules. root contains the files of the module of, which is empty for the whole
// tree.
func (g *grafter) add(root *Node, of Module, depth int, open Opener) (*Node, error) {
	modules, err := modulesOf(New(root), of)
	if err != nil {
		return nil, err
	}
	if g.added += len(modules); g.added > maxModules || len(modules) > 0 && depth == maxModuleDepth {
		return nil, fmt.Errorf("%s: more than %d submodules, or nested more than %d levels deep", path.Join(of.Path, modulesFile), maxModules, maxModuleDepth)
	}
	for _, m := range modules {
		if g.ctx.Err() != nil {
			return nil, context.Cause(g.ctx)
		}
		files, below, err := open(m)
		if err != nil {
			return nil, err
		}
		added, err := g.add(files.root, m, depth+1, below)
		if err != nil {
			return nil, err
		}
		inside := strings.TrimPrefix(strings.TrimPrefix(m.Path, of.Path), "/")
		if root, err = root.graft(strings.Split(inside, "/"), added); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// modulesOf returns the submodules of a tree, sorted by path. Like git, it ignores submodules that exist only in
// .gitmodules.
func modulesOf(t *Tree, of Module) ([]Module, error) {
	name := path.Join(of.Path, modulesFile)
	text, err := t.ReadFile(modulesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(text) > maxModulesFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxModulesFile)
	}
	listed := config.NewModules()
	if err := listed.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var modules []Module
	for _, m := range listed.Submodules {
		n, err := t.lookup("read", m.Path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || err == nil && n.Mode != Submodule {
			continue
		}
		var commit plumbing.Hash
		if err == nil {
			commit, err = n.Identity()
		}
		if err != nil {
			return nil, err
		}
		at := path.Join(of.Path, m.Path)
		top := of.Top
		if top == "" {
			top = at
		}
		modules = append(modules, Module{Name: m.Name, URL: m.URL, Path: at, Top: top, Commit: commit})
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path+"\n"+a.Name, b.Path+"\n"+b.Name) })
	return slices.CompactFunc(modules, func(a, b Module) bool { return a.Path == b.Path }), nil
}

// graft returns a copy of a directory with the files of a submodule at a path below it.
func (n *Node) graft(parts []string, files *Node) (*Node, error) {
	entries, err := n.Entries()
	if err != nil {
		return nil, err
	}
	entries = slices.Clone(entries)
	i := slices.IndexFunc(entries, func(n *Node) bool { return n.Name == parts[0] })
	if len(parts) == 1 {
		entries[i] = &Node{Name: parts[0], Mode: fs.ModeDir, List: files.Entries, Identity: files.Hash}
	} else if entries[i], err = entries[i].graft(parts[1:], files); err != nil {
		return nil, err
	}
	return &Node{Name: n.Name, Mode: fs.ModeDir, List: func() ([]*Node, error) { return entries, nil }}, nil
}
