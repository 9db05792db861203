package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// SubmoduleError is returned if the clone does not contain a submodule or its recorded commit.
type SubmoduleError struct {
	// Path is the directory of the submodule. Top is the directory of the outermost submodule that contains it, which
	// 'git submodule update' expects.
	Path, Top string
	// Commit is the recorded commit if only the commit is missing, or "" if the submodule is missing.
	Commit string
}

func (e *SubmoduleError) Error() string {
	if e.Commit != "" {
		return fmt.Sprintf("the clone does not contain commit %s of submodule %s", e.Commit, e.Path)
	}
	return fmt.Sprintf("the clone does not contain submodule %s", e.Path)
}

// Submodules returns a tree with the files of its submodules at the recorded commits, recursively. It reads the clones
// of the submodules in this clone.
func (c *Clone) Submodules(ctx context.Context, t *filetree.Tree) (*filetree.Tree, error) {
	c.modulesMu.Lock()
	defer c.modulesMu.Unlock()
	return t.WithModules(ctx, c.openModule)
}

// openModule returns the files of a submodule.
func (c *Clone) openModule(m filetree.Module) (*filetree.Tree, filetree.Opener, error) {
	module, err := c.module(m.Name)
	if errors.Is(err, ErrNoRepository) {
		return nil, nil, &SubmoduleError{Path: m.Path, Top: m.Top}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("opening submodule %s: %w", m.Path, err)
	}
	files, err := module.At(m.Commit)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, nil, &SubmoduleError{Path: m.Path, Top: m.Top, Commit: m.Commit.String()}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading submodule %s: %w", m.Path, err)
	}
	return files, module.openModule, nil
}

// module opens the clone of a submodule, which is in the Git directory under its name.
func (c *Clone) module(name string) (*Clone, error) {
	if known := c.modules[name]; known != nil {
		return known, nil
	}
	if !fs.ValidPath(name) || name == "." || strings.Contains(name, "\\") {
		return nil, fmt.Errorf("invalid name %q in .gitmodules", name)
	}
	for _, data := range []string{c.gitDir, commonDirectory(c.gitDir)} {
		folder := filepath.Join(data, "modules", filepath.FromSlash(name))
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue
		}
		module, err := OpenAt(Location{Directory: ".", GitDir: folder})
		if errors.Is(err, ErrNoRepository) {
			continue
		}
		if err != nil {
			return nil, err
		}
		module.root = ""
		if c.modules == nil {
			c.modules = map[string]*Clone{}
		}
		c.modules[name] = module
		return module, nil
	}
	return nil, ErrNoRepository
}
