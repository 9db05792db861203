// Package sourcetree holds the files of sources in memory: it packs, unpacks, selects and searches them.
package sourcetree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
)

// Part is the part of a source that one tree provides.
type Part struct {
	Tree fs.FS
	// From is a directory or file of the tree; "" is the whole tree.
	From string
	// At is the path in the source; "" is the root.
	At string
	// Only holds the prefixes of the paths in the source to include. Nil includes all paths.
	Only []string
}

// Assemble returns the files that source-controller packs into the artifact of a source, in memory.
// Select describes which files these are.
func Assemble(ctx context.Context, parts []Part, ignore Ignore) (*filetree.Tree, error) {
	files, _, err := selected(ctx, parts, ignore)
	if err != nil {
		return nil, err
	}
	kept, limits := make(map[string][]byte, len(files)), budget.New(budget.Default())
	for name, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		size, err := file.Size()
		if err == nil {
			err = limits.File(name, size)
		}
		if err == nil {
			kept[name], err = file.Read()
		}
		if err != nil {
			return nil, fmt.Errorf("reading the files of the source: %w", err)
		}
	}
	return filetree.InMemory(kept)
}

// Select returns the files that source-controller packs into the artifact of a source: the files of
// all parts, where a later part replaces files of earlier parts. It excludes the files that match
// the .sourceignore files and spec.ignore, or the default patterns if there are neither.
func Select(ctx context.Context, parts []Part, ignore Ignore) (*filetree.Tree, error) {
	files, rules, err := selected(ctx, parts, ignore)
	if err != nil {
		return nil, err
	}
	tree, err := filetree.Of(files)
	if err != nil {
		return nil, err
	}
	tree.Missing = func(name string) error { return missing(parts, rules, name) }
	return tree, ctx.Err()
}

// selected returns the files of parts by path, and the rules that have excluded others.
func selected(ctx context.Context, parts []Part, ignore Ignore) (map[string]filetree.File, []Rule, error) {
	a := assembly{}
	for _, part := range parts {
		if err := a.list(ctx, part); err != nil {
			return nil, nil, err
		}
	}
	rules, err := a.rules(ignore)
	if err != nil {
		return nil, nil, err
	}
	for name := range a {
		if _, excluded := Excluding(rules, name, false); excluded {
			delete(a, name)
		}
	}
	return a, rules, nil
}

// assembly contains the files of a source by path.
type assembly map[string]filetree.File

// list adds the files of a part without reading them.
func (a assembly) list(ctx context.Context, part Part) error {
	from := Clean(part.From)
	return fs.WalkDir(part.Tree, from, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == from {
			return &PathError{part.From, "the directory does not exist"}
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" && name != from {
			return fs.SkipDir // always excluded, and large
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		to := Clean(path.Join(part.At, strings.TrimPrefix(name, from+"/")))
		if name == from {
			to = Clean(part.At)
		} else if from == "." {
			to = Clean(path.Join(part.At, name))
		}
		if part.includes(to) {
			a[to] = filetree.FileOf(part.Tree, name)
		}
		return nil
	})
}

// includes reports whether a path in the source is not excluded by Only.
func (p Part) includes(name string) bool {
	return p.Only == nil || slices.ContainsFunc(p.Only, func(only string) bool { return strings.HasPrefix(name, only) })
}

// rules returns the patterns of the .sourceignore files followed by the patterns of spec.ignore,
// which have precedence, or the default patterns if there are neither. The files of Git itself are
// always excluded.
func (a assembly) rules(ignore Ignore) ([]Rule, error) {
	var names []string
	for name := range a {
		if path.Base(name) == sourceignore.IgnoreFile {
			names = append(names, name)
		}
	}
	// Files in parent directories come first.
	slices.SortFunc(names, func(x, y string) int {
		return strings.Compare(path.Dir("/"+x)+"/", path.Dir("/"+y)+"/")
	})
	var rules []Rule
	for _, name := range names {
		text, err := a[name].Read()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		rules = append(rules, ReadRules(string(text), Domain(path.Dir(name)), name)...)
	}
	rules = append(rules, ReadRules(ignore.Patterns, nil, ignore.field())...)
	if len(rules) == 0 {
		rules = defaults(sourceignore.ExcludeExt, sourceignore.ExcludeCI, sourceignore.ExcludeExtra)
	}
	return append(defaults(sourceignore.ExcludeVCS), rules...), nil
}
