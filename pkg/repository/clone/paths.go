package clone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// Selection holds cluster directories.
type Selection struct {
	Paths []string
	// Several is set if there may be several directories. Results then include the cluster.
	Several bool
	// Detected is set without --path. Others then lists the directories with Kustomizations that no cluster applies, and
	// Affected those of them that the change may affect.
	Detected         bool
	Others, Affected []string
}

// String returns the first directories.
func (s Selection) String() string { return budget.List(s.Paths, budget.Directories) }

// Warn warns about Others.
func (s Selection) Warn(warn func(format string, args ...any)) {
	if len(s.Others) > 0 {
		warn("not included: %s; select them with --path", unapplied(s.Others))
	}
}

// Err returns an error if the change may affect Kustomizations that are not compared. With strict, it does so for all of Others.
func (s Selection) Err(strict bool) error {
	switch {
	case len(s.Affected) > 0:
		return hint.Errorf("select them with --path", "not compared, although the change may affect them: %s", unapplied(s.Affected))
	case strict && len(s.Others) > 0:
		return hint.Errorf("select them with --path", "not compared: %s", unapplied(s.Others))
	}
	return nil
}

func unapplied(directories []string) string {
	return "directories with Kustomizations that no detected cluster applies: " + budget.List(directories, budget.Directories)
}

// Paths returns the cluster directories that --path selects, or the detected ones without it.
func Paths(ctx context.Context, clone *git.Clone, paths []string, base, head repository.Revision) (s Selection, err error) {
	if len(paths) == 0 {
		return detected(ctx, clone, base, head)
	}
	s.Several = len(paths) > 1
	seen := map[string]bool{}
	for _, name := range paths {
		inside, err := Inside(clone, name)
		if err != nil {
			return s, err
		}
		found := []string{inside}
		if layout.IsPattern(inside) {
			s.Several = true
			found, err = layout.Match(base.Tree, head.Tree, inside)
		} else if !isFolder(base, inside) && !isFolder(head, inside) {
			return s, notFound(ctx, clone, name, base, head)
		}
		var problem *layout.PatternError
		if errors.As(err, &problem) {
			return s, hint.Errorf("use cluster directories or a quoted pattern, e.g. --path 'clusters/*'", "--path %s: %s", hint.Quote(name), problem.Problem)
		}
		if err != nil {
			return s, err
		}
		for _, path := range found {
			if !seen[path] {
				s.Paths = append(s.Paths, path)
			}
			seen[path] = true
		}
	}
	return s, nil
}

// detected returns the cluster directories of both revisions, sorted.
func detected(ctx context.Context, clone *git.Clone, base, head repository.Revision) (Selection, error) {
	s := Selection{Several: true, Detected: true}
	revisions := []repository.Revision{base, head}
	if base.Name == head.Name {
		revisions = revisions[1:]
	}
	var elsewhere []string
	for _, at := range revisions {
		roots, others, err := layout.Roots(ctx, at.Tree)
		if err != nil {
			return s, err
		}
		s.Paths, elsewhere = append(s.Paths, roots...), append(elsewhere, others...)
	}
	slices.Sort(s.Paths)
	if s.Paths = slices.Compact(s.Paths); len(s.Paths) == 0 {
		slices.Sort(elsewhere)
		return s, layout.NotFound(slices.Compact(elsewhere))
	}
	remotes, err := clone.Remotes()
	if err != nil {
		return s, err
	}
	affected := map[string]bool{}
	for _, at := range revisions {
		found, err := layout.Unapplied(ctx, at.Tree, s.Paths)
		if err != nil {
			return s, err
		}
		elsewhere := map[controllers.ID]bool{}
		if len(found) > 0 && len(remotes) > 0 {
			if elsewhere, err = otherRepositories(ctx, at.Tree, s.Paths, remotes); err != nil {
				return s, err
			}
		}
		for _, m := range found {
			at := path.Dir(m.File)
			affected[at] = affected[at] || differs(base, head, m.File) || deploysHere(m, elsewhere) && differs(base, head, layout.Path(m.Unstructured))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(affected)) {
		if s.Others = append(s.Others, at); affected[at] {
			s.Affected = append(s.Affected, at)
		}
	}
	return s, nil
}

// deploysHere reports whether a Kustomization may deploy a directory of this repository. The root of another kind of source than a
// GitRepository is that of an artifact.
func deploysHere(ks sourcetree.Manifest, elsewhere map[controllers.ID]bool) bool {
	source := build.SourceOf(ks.Unstructured).WithoutNamespace()
	return !elsewhere[source] && (layout.Path(ks.Unstructured) != "." || source.Kind == controllers.GitRepository)
}

// otherRepositories returns the names of GitRepositories in a tree that refer to other repositories: none with the name has the address
// of a remote, and no cluster uses it. The IDs have no namespaces, because a kustomization.yaml may set them.
func otherRepositories(ctx context.Context, tree fs.FS, clusters, remotes []string) (map[controllers.ID]bool, error) {
	all := map[controllers.ID]bool{}
	local := map[controllers.ID]bool{}
	identity := repository.Identity{Remotes: remotes}
	_, err := sourcetree.Search(ctx, tree, []string{"toolkit.fluxcd.io", "spec"}, func(o *unstructured.Unstructured) bool {
		id := controllers.IDOf(o.Object).WithoutNamespace()
		switch url := (controllers.Path{"spec.url"}).String(o.Object); {
		case build.IsKustomization(o) && slices.Contains(clusters, layout.Path(o)):
			local[build.SourceOf(o).WithoutNamespace()] = true
		case id != controllers.FluxID(controllers.GitRepository, "", id.Name):
		case url == "" || strings.Contains(url, "${") || identity.Local(url):
			local[id] = true
		default:
			all[id] = true
		}
		return false
	})
	maps.DeleteFunc(all, func(id controllers.ID, _ bool) bool { return local[id] })
	return all, err
}

// differs reports whether a file or directory differs between the revisions, or cannot be read.
func differs(base, head repository.Revision, name string) bool {
	before, err := base.Tree.Hash(name)
	after, errAfter := head.Tree.Hash(name)
	for _, err := range []error{err, errAfter} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return before != after
}

func isFolder(at repository.Revision, name string) bool {
	info, err := fs.Stat(at.Tree, name)
	return err == nil && info.IsDir()
}

// notFound returns the error for a directory that neither revision contains. Its remedy lists the
// cluster directories.
func notFound(ctx context.Context, clone *git.Clone, name string, base, head repository.Revision) error {
	where := "either revision"
	if base.Name == head.Name {
		where = head.Name
	}
	clusters, _, err := layout.Roots(ctx, head.Tree)
	if err != nil {
		clusters = nil // the remedy contains an example instead
	}
	for i, cluster := range clusters {
		clusters[i] = fromHere(clone, cluster)
	}
	return hint.Errorf(sourcetree.PathRemedy(clusters), "--path %s: no such directory in %s", hint.Quote(name), where)
}

// fromHere returns a path in the repository relative to the current directory, as in --path.
func fromHere(clone *git.Clone, name string) string {
	here, err := os.Getwd()
	if err != nil || clone.Root() == "" {
		return name
	}
	relative, err := filepath.Rel(realPath(here), filepath.Join(realPath(clone.Root()), filepath.FromSlash(name)))
	if err != nil {
		return name
	}
	return filepath.ToSlash(relative)
}

// Inside returns the path of directory, which need not exist, relative to the
// root of the repository.
func Inside(clone *git.Clone, folder string) (string, error) {
	if clone.Root() == "" {
		return path.Clean(filepath.ToSlash(folder)), nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the current directory: %w", err)
	}
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(here, folder)
	}
	root := clone.Root()
	for _, root := range []string{root, realPath(root)} {
		relative, err := filepath.Rel(root, folder)
		if err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
			return filepath.ToSlash(relative), nil
		}
	}
	return "", fmt.Errorf("%s is not in the Git repository %s", folder, root)
}

func realPath(name string) string {
	if resolved, err := filepath.EvalSymlinks(name); err == nil {
		return resolved
	}
	return name
}
