package clone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// Paths returns the cluster directories that --path selects, and whether it may select several.
// Results then include the cluster.
func Paths(ctx context.Context, clone *git.Clone, paths []string, base, head repository.Revision) (all []string, several bool, err error) {
	seen := map[string]bool{}
	for _, name := range paths {
		inside, err := Inside(clone, name)
		if err != nil {
			return nil, false, err
		}
		found := []string{inside}
		if layout.IsPattern(inside) {
			several = true
			found, err = layout.Match(base.Tree, head.Tree, inside)
		} else if !isFolder(base, inside) && !isFolder(head, inside) {
			return nil, false, notFound(ctx, clone, name, base, head)
		}
		var problem *layout.PatternError
		if errors.As(err, &problem) {
			return nil, false, hint.Errorf("use cluster directories or a quoted pattern, e.g. --path 'clusters/*'", "--path %s: %s", hint.Quote(name), problem.Problem)
		}
		if err != nil {
			return nil, false, err
		}
		for _, path := range found {
			if !seen[path] {
				all = append(all, path)
			}
			seen[path] = true
		}
	}
	return all, several || len(paths) > 1, nil
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
