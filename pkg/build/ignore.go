package build

import (
	"bytes"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
	kustomize "sigs.k8s.io/kustomize/api/types"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// ignoring matches the files of a directory that a build excludes. Nil matches no files.
type ignoring struct {
	tree    fs.FS
	matcher gitignore.Matcher
}

// ignored reads the patterns of a directory. It returns nil without Filter and Ignore.
func (f *files) ignored(folder string, o Options) (*ignoring, error) {
	if !o.Filter && len(o.Ignore) == 0 {
		return nil, nil
	}
	patterns, err := readPatterns(f.tree, folder)
	if err != nil {
		return nil, err
	}
	for _, line := range o.Ignore {
		patterns = append(patterns, gitignore.ParsePattern(line, sourcetree.Domain(folder)))
	}
	return &ignoring{f.tree, sourceignore.NewDefaultMatcher(patterns, sourcetree.Domain(folder))}, nil
}

// readPatterns reads the .sourceignore files of a directory and its subdirectories.
func readPatterns(tree fs.FS, folder string) ([]gitignore.Pattern, error) {
	var patterns []gitignore.Pattern
	err := fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir() || entry.Name() != sourceignore.IgnoreFile:
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		patterns = append(patterns, sourceignore.ReadPatterns(bytes.NewReader(text), sourcetree.Domain(path.Dir(name)))...)
		return nil
	})
	return patterns, err
}

func (i *ignoring) matches(name string, isDir bool) bool {
	return i != nil && i.matcher.Match(strings.Split(name, "/"), isDir)
}

// filter removes excluded files from a kustomization.
func (i *ignoring) filter(k *kustomize.Kustomization, folder string) {
	if i == nil {
		return
	}
	for _, list := range []*[]string{&k.Resources, &k.Components, &k.Crds} {
		var kept []string
		for _, entry := range *list {
			if !i.lists(folder, entry) {
				kept = append(kept, entry)
			}
		}
		*list = kept
	}
}

// lists reports whether an entry of a kustomization is an excluded file.
func (i *ignoring) lists(folder, entry string) bool {
	if u, err := url.Parse(entry); err == nil && u.Scheme != "" {
		return false
	}
	name := path.Join(folder, entry)
	info, err := fs.Stat(i.tree, name)
	return err == nil && i.matches(name, info.IsDir())
}
