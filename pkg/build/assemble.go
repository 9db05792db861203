package build

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
)

// Part is what one tree gives to a source.
type Part struct {
	Tree fs.FS
	// From is the folder or file of it that counts, "" for all.
	From string
	// At is where it goes in the source, "" for the root.
	At string
	// Only are the beginnings of the paths in the source that count; nil means all.
	Only []string
}

// Assemble puts together what source-controller makes an archive of: the parts,
// of which a later one replaces files of those before it, without what
// .sourceignore files and the patterns of spec.ignore, or the defaults, leave out.
func Assemble(ctx context.Context, parts []Part, ignore string) (*Tree, error) {
	a := &assembly{files: map[string]origin{}}
	for _, part := range parts {
		if err := a.list(ctx, part); err != nil {
			return nil, err
		}
	}
	matcher, err := a.matcher(ignore)
	if err != nil {
		return nil, err
	}
	kept := map[string][]byte{}
	for name, from := range a.files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if matcher.Match(strings.Split(name, "/"), false) {
			continue
		}
		if kept[name], err = fs.ReadFile(from.tree, from.name); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return NewTree(kept), nil
}

// origin is where a file of the source comes from.
type origin struct {
	tree fs.FS
	name string
}

type assembly struct{ files map[string]origin }

// list notes the files of a part, unread.
func (a *assembly) list(ctx context.Context, part Part) error {
	from := inside(part.From)
	return fs.WalkDir(part.Tree, from, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == from {
			return &PathError{part.From, "there is no such folder"}
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		to := inside(path.Join(part.At, strings.TrimPrefix(name, from+"/")))
		if name == from {
			to = inside(part.At)
		} else if from == "." {
			to = inside(path.Join(part.At, name))
		}
		if part.Only == nil || slices.ContainsFunc(part.Only, func(only string) bool { return strings.HasPrefix(to, only) }) {
			a.files[to] = origin{part.Tree, name}
		}
		return nil
	})
}

// matcher knows the .sourceignore files and the patterns of the spec, which
// overrule those, or the defaults where there are none of these. What belongs
// to Git is left out in any case.
func (a *assembly) matcher(ignore string) (gitignore.Matcher, error) {
	var names []string
	for name := range a.files {
		if path.Base(name) == sourceignore.IgnoreFile {
			names = append(names, name)
		}
	}
	// Those further up come first.
	slices.SortFunc(names, func(x, y string) int {
		return strings.Compare(path.Dir("/"+x)+"/", path.Dir("/"+y)+"/")
	})
	var patterns []gitignore.Pattern
	for _, name := range names {
		from := a.files[name]
		text, err := fs.ReadFile(from.tree, from.name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		patterns = append(patterns, sourceignore.ReadPatterns(bytes.NewReader(text), domain(path.Dir(name)))...)
	}
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(ignore), nil)...)
	if len(patterns) == 0 {
		patterns = sourceignore.DefaultPatterns(nil)
	}
	return sourceignore.NewMatcher(append(sourceignore.VCSPatterns(nil), patterns...)), nil
}
