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
func Assemble(ctx context.Context, parts []Part, ignore string) (*filetree.Tree, error) {
	files, err := selected(ctx, parts, ignore)
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
func Select(ctx context.Context, parts []Part, ignore string) (*filetree.Tree, error) {
	files, err := selected(ctx, parts, ignore)
	if err != nil {
		return nil, err
	}
	tree, err := filetree.Of(files)
	if err != nil {
		return nil, err
	}
	tree.Missing = func(name string) error { return missing(parts, name) }
	return tree, ctx.Err()
}

func selected(ctx context.Context, parts []Part, ignore string) (map[string]filetree.File, error) {
	a := assembly{}
	for _, part := range parts {
		if err := a.list(ctx, part); err != nil {
			return nil, err
		}
	}
	matcher, err := a.matcher(ignore)
	if err != nil {
		return nil, err
	}
	for name := range a {
		if matcher.Match(strings.Split(name, "/"), false) {
			delete(a, name)
		}
	}
	return a, nil
}

// excludedError is returned for a file that is in the source but not in its artifact.
type excludedError struct{ name string }

func (e excludedError) Error() string {
	return e.name + " is excluded from the artifact by .sourceignore, spec.ignore or the defaults of source-controller"
}

// Is reports whether target is fs.ErrNotExist.
func (e excludedError) Is(target error) bool { return target == fs.ErrNotExist }

// missing returns why a path is not in an artifact. It keeps errors of the original tree other than that the file is
// missing, such as for symbolic links.
func missing(parts []Part, name string) error {
	err := fs.ErrNotExist
	for _, part := range parts {
		if Clean(part.From) != "." || Clean(part.At) != "." {
			continue
		}
		info, statErr := fs.Stat(part.Tree, name)
		var located *fs.PathError
		switch {
		case statErr == nil && !info.IsDir():
			err = excludedError{name}
		case errors.As(statErr, &located):
			err = located.Err
		}
	}
	return err
}

// assembly contains the files of a source by path.
type assembly map[string]filetree.File

// list adds the files of a part without reading them.
func (a assembly) list(ctx context.Context, part Part) error {
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
			a[to] = filetree.FileOf(part.Tree, name)
		}
		return nil
	})
}

// matcher returns the patterns of the .sourceignore files followed by the patterns of spec.ignore,
// which have precedence, or the default patterns if there are neither. The files of Git itself are
// always excluded.
func (a assembly) matcher(ignore string) (gitignore.Matcher, error) {
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
	var patterns []gitignore.Pattern
	for _, name := range names {
		text, err := a[name].Read()
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
