package filetree

import (
	"context"
	"io/fs"
)

// Walk calls each for the regular files of a tree outside of .git, in lexical order. source-controller
// omits other files as well. It stops at the first error, and when ctx ends.
func Walk(ctx context.Context, tree fs.FS, each func(name string, entry fs.DirEntry) error) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		return each(name, entry)
	})
}
