// Package sourcetree holds the files of sources in memory: it packs, unpacks, selects and searches them.
package sourcetree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"github.com/fluxkit/flux/internal/budget"
)

// Part is the part of a source that one tree provides.
type Part struct {
	Tree fs.FS
	// From is a folder or file of the tree; "" is the whole tree.
	From string
	// At is the path in the source; "" is the root.
	At string
	// Only holds the prefixes of the paths in the source to include. Nil includes all paths.
	Only []string
}

// Assemble returns the files that source-controller packs into the artifact of a source, in memory.
// Select describes which files these are.
func Assemble(ctx context.Context, parts []Part, ignore string) (*Tree, error) {
	selection, err := Select(ctx, parts, ignore)
	if err != nil {
		return nil, err
	}
	kept, limits := map[string][]byte{}, budget.New(budget.Default())
	for name, from := range selection.origins {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if kept[name], err = ReadWithin(limits, from.Tree, from.Name); err != nil {
			return nil, fmt.Errorf("reading the files of the source: %w", err)
		}
	}
	return NewTree(kept), nil
}

// Select returns the files that source-controller packs into the artifact of a source: the files of
// all parts, where a later part replaces files of earlier parts. It excludes the files that match
// the .sourceignore files and spec.ignore, or the default patterns if there are neither.
func Select(ctx context.Context, parts []Part, ignore string) (*Selection, error) {
	a := &assembly{files: map[string]Origin{}}
	for _, part := range parts {
		if err := a.list(ctx, part); err != nil {
			return nil, err
		}
	}
	matcher, err := a.matcher(ignore)
	if err != nil {
		return nil, err
	}
	for name := range a.files {
		if matcher.Match(strings.Split(name, "/"), false) {
			delete(a.files, name)
		}
	}
	selection := NewSelection(a.files)
	for _, part := range parts {
		if Clean(part.From) == "." && Clean(part.At) == "." {
			selection.whole = append(selection.whole, part.Tree)
		}
	}
	return selection, ctx.Err()
}

type assembly struct{ files map[string]Origin }

// list adds the files of a part without reading them.
func (a *assembly) list(ctx context.Context, part Part) error {
	from := Clean(part.From)
	return fs.WalkDir(part.Tree, from, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == from {
			return &PathError{part.From, "there is no such directory"}
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
		if part.Only == nil || slices.ContainsFunc(part.Only, func(only string) bool { return strings.HasPrefix(to, only) }) {
			a.files[to] = Origin{part.Tree, name}
		}
		return nil
	})
}

// matcher returns the patterns of the .sourceignore files followed by the patterns of spec.ignore,
// which have precedence, or the default patterns if there are neither. The files of Git itself are
// always excluded.
func (a *assembly) matcher(ignore string) (gitignore.Matcher, error) {
	var names []string
	for name := range a.files {
		if path.Base(name) == sourceignore.IgnoreFile {
			names = append(names, name)
		}
	}
	// Files in parent folders come first.
	slices.SortFunc(names, func(x, y string) int {
		return strings.Compare(path.Dir("/"+x)+"/", path.Dir("/"+y)+"/")
	})
	var patterns []gitignore.Pattern
	for _, name := range names {
		from := a.files[name]
		text, err := fs.ReadFile(from.Tree, from.Name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		patterns = append(patterns, sourceignore.ReadPatterns(bytes.NewReader(text), Domain(path.Dir(name)))...)
	}
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(ignore), nil)...)
	if len(patterns) == 0 {
		patterns = sourceignore.DefaultPatterns(nil)
	}
	return sourceignore.NewMatcher(append(sourceignore.VCSPatterns(nil), patterns...)), nil
}
