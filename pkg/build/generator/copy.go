package generator

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

const (
	strategyMerge   = "Merge"
	strategyExtract = "Extract"
)

// staging is the artifact while it is assembled. Directories are recorded because
// the target path of a copy depends on whether the target is a directory.
type staging struct {
	files   map[string]filetree.File
	folders map[string]bool
	// count counts the files of all artifacts of the generator.
	count *int64
}

// copying is one copy operation.
type copying struct {
	operation
	*staging
	tree fs.FS
	to   string
}

// copy executes a copy operation.
func (g *Generator) copy(s *staging, o operation, sources Sources) error {
	to, ok := strings.CutPrefix(o.To, "@artifact/")
	if !ok || strings.HasPrefix(to, "/") {
		return fmt.Errorf("invalid destination %q: must have the form @artifact/PATH", o.To)
	}
	for _, pattern := range o.Exclude {
		if !doublestar.ValidatePattern(pattern) {
			return fmt.Errorf("invalid exclude pattern %q", pattern)
		}
	}
	tree, from, err := g.source(o.From, sources)
	if err != nil {
		return err
	}
	c := &copying{operation: o, staging: s, tree: tree, to: to}
	if isPattern(from) {
		return c.matches(from)
	}
	return c.single(path.Clean(from))
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[]") }

// single copies a file or a directory.
func (c *copying) single(from string) error {
	info, err := fs.Stat(c.tree, from)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir() && c.Strategy == strategyExtract:
		return errors.New("the strategy Extract requires an archive, not a directory")
	case info.IsDir():
		return c.directory(from, path.Join(c.to, path.Base(from)), from)
	case c.excluded(from, "."):
		return nil
	case c.Strategy == strategyExtract && !isArchive(from):
		return errors.New("the strategy Extract requires a .tar.gz or .tgz file")
	case c.Strategy == strategyExtract:
		return c.extract(from)
	case strings.HasSuffix(c.To, "/") || c.folders[path.Clean(c.to)]:
		return c.file(from, path.Join(c.to, path.Base(from)))
	}
	return c.file(from, c.to)
}

// matches copies the files and directories that match a pattern. A pattern that
// ends in /** copies the content of a directory, others keep the whole path.
func (c *copying) matches(pattern string) error {
	// source-watcher supports ** only for archives.
	glob := fs.Glob
	if c.Strategy == strategyExtract {
		glob = func(tree fs.FS, pattern string) ([]string, error) { return doublestar.Glob(tree, pattern) }
	}
	found, err := glob(c.tree, pattern)
	if err != nil {
		return fmt.Errorf("invalid pattern: %w", err)
	}
	root := literalPrefix(pattern)
	copied := 0
	for _, name := range found {
		if name == "." || c.excluded(name, root) {
			continue
		}
		copied++
		if err := c.match(pattern, name, root); err != nil {
			return err
		}
	}
	if copied == 0 {
		return errors.New("no file matches")
	}
	return nil
}

func (c *copying) match(pattern, name, root string) error {
	if c.Strategy == strategyExtract {
		if !isArchive(name) {
			return nil
		}
		return c.extract(name)
	}
	to := path.Join(c.to, name)
	if prefix, all := strings.CutSuffix(pattern, "/**"); all {
		if inner, ok := strings.CutPrefix(name, prefix+"/"); ok {
			to = path.Join(c.to, inner)
		}
	}
	info, err := fs.Stat(c.tree, name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return c.directory(name, to, root)
	}
	return c.file(name, to)
}

// literalPrefix returns the path elements of a pattern before the first one
// with a wildcard.
func literalPrefix(pattern string) string {
	var prefix []string
	for _, part := range strings.Split(path.Clean(pattern), "/") {
		if isPattern(part) {
			break
		}
		prefix = append(prefix, part)
	}
	return path.Clean(path.Join(prefix...))
}

// directory copies a directory. Files are always overwritten, as source-watcher
// merges only files that an operation specifies or matches directly.
func (c *copying) directory(from, to, root string) error {
	return fs.WalkDir(c.tree, from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != from && c.excluded(name, root) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := path.Join(to, strings.TrimPrefix(strings.TrimPrefix(name, from), "/"))
		if from == "." {
			target = path.Join(to, name)
		}
		if entry.IsDir() {
			return c.enter(path.Clean(target))
		}
		return c.put(target, filetree.FileOf(c.tree, name))
	})
}

// file copies a file, or merges it into an existing one.
func (c *copying) file(from, to string) error {
	existing, exists := c.files[path.Clean(to)]
	if c.Strategy != strategyMerge || !exists {
		return c.put(to, filetree.FileOf(c.tree, from))
	}
	below, err := documents(to, existing)
	if err != nil {
		return err
	}
	above, err := documents(from, filetree.FileOf(c.tree, from))
	if err != nil {
		return err
	}
	merged, err := yaml.Marshal(charts.MergeValues(below, above))
	if err != nil {
		return err
	}
	return c.put(to, filetree.Memory(merged))
}

// documents merges the documents of a YAML file.
func documents(name string, file filetree.File) (map[string]any, error) {
	text, err := file.Read()
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	err = sourcetree.Documents(bytes.NewReader(text), func(document []byte) error {
		var content map[string]any
		err := budget.Unmarshal(name, document, &content)
		all = charts.MergeValues(all, content)
		return err
	})
	return all, err
}

// extract unpacks an archive into the target directory.
func (c *copying) extract(from string) error {
	content, err := fs.ReadFile(c.tree, from)
	if err != nil {
		return err
	}
	tree, err := sourcetree.Archive(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := c.enter(path.Clean(c.to)); err != nil {
		return err
	}
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return c.put(path.Join(c.to, name), filetree.FileOf(tree, name))
	})
}

func isArchive(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// put adds a file to the artifact.
func (s *staging) put(name string, file filetree.File) error {
	name = path.Clean(name)
	if s.folders[name] {
		return fmt.Errorf("%s is a directory in the artifact", name)
	}
	if err := s.enter(path.Dir(name)); err != nil {
		return err
	}
	if *s.count++; *s.count > budget.Default().Files {
		return &budget.ExceededError{Name: name, Fact: fmt.Sprintf("the artifacts have more than %d files", budget.Default().Files)}
	}
	s.files[name] = file
	return nil
}

// enter adds a directory and its parent directories.
func (s *staging) enter(name string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("%s is outside the artifact", name)
	}
	for ; !s.folders[name]; name = path.Dir(name) {
		if _, file := s.files[name]; file {
			return fmt.Errorf("%s is a file in the artifact", name)
		}
		s.folders[name] = true
	}
	return nil
}

// excluded reports whether an exclude pattern matches a path: the path in the
// source, the path below root, or the name if the pattern has no slash.
func (o *operation) excluded(name, root string) bool {
	candidates := []string{name}
	if inner, ok := strings.CutPrefix(name, root+"/"); ok {
		candidates = append(candidates, inner)
	}
	for _, pattern := range o.Exclude {
		names := candidates
		if !strings.Contains(pattern, "/") {
			names = append(names[:len(names):len(names)], path.Base(name))
		}
		for _, name := range names {
			if doublestar.MatchUnvalidated(pattern, name) {
				return true
			}
		}
	}
	return false
}
