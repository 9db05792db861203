// Package layout determines the layout of repositories: the cluster directories, and the objects that install Flux.
package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxClusters bounds the clusters that a pattern matches, because it is matched against untrusted files.
const maxClusters = 1000

// PatternError is returned for a pattern that is invalid, or that matches no directory.
type PatternError struct {
	Pattern, Problem string
}

func (e *PatternError) Error() string { return e.Pattern + ": " + e.Problem }

// IsPattern reports whether a path may match several directories.
func IsPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// Match returns the directories of either revision that match a pattern, sorted. The pattern has the
// syntax of path.Match. As in a shell, it matches hidden directories only if it begins with a dot.
func Match(base, head fs.FS, pattern string) ([]string, error) {
	if strings.Contains(pattern, "**") {
		return nil, &PatternError{pattern, "** is not supported: use * for each level"}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, &PatternError{pattern, "invalid pattern"}
	}
	found := map[string]bool{}
	for _, tree := range []fs.FS{base, head} {
		if err := match(tree, ".", strings.Split(sourcetree.Clean(pattern), "/"), found); err != nil {
			return nil, err
		}
	}
	switch {
	case len(found) == 0:
		return nil, &PatternError{pattern, "matches no directory in either revision"}
	case len(found) > maxClusters:
		return nil, &PatternError{pattern, fmt.Sprintf("matches more than %d directories", maxClusters)}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// match adds the directories in a directory that the elements of a pattern match.
func match(tree fs.FS, folder string, elements []string, found map[string]bool) error {
	if len(found) > maxClusters {
		return nil
	}
	if len(elements) == 0 {
		found[folder] = true
		return nil
	}
	element, rest := elements[0], elements[1:]
	if !IsPattern(element) {
		return matchBelow(tree, path.Join(folder, element), rest, found)
	}
	entries, err := fs.ReadDir(tree, folder)
	if err != nil {
		return fmt.Errorf("reading %s: %w", folder, err)
	}
	for _, entry := range entries {
		hidden := strings.HasPrefix(entry.Name(), ".") && !strings.HasPrefix(element, ".")
		if matches, err := path.Match(element, entry.Name()); err != nil || !matches || hidden {
			continue
		}
		if err := matchBelow(tree, path.Join(folder, entry.Name()), rest, found); err != nil {
			return err
		}
	}
	return nil
}

// matchBelow matches the rest of a pattern in a directory.
func matchBelow(tree fs.FS, name string, rest []string, found map[string]bool) error {
	info, err := fs.Stat(tree, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if !info.IsDir() {
		return nil
	}
	return match(tree, name, rest, found)
}

// Roots returns the cluster directories: directories that a FluxInstance syncs, that bootstrap has created, or that a
// Kustomization inside them applies, unless one of these clusters applies that Kustomization. others lists other
// directories with Kustomizations: directories that no Kustomization applies, or all of them if there are none.
func Roots(ctx context.Context, tree fs.FS) (roots, others []string, err error) {
	clusters, elsewhere, entries := map[string]bool{}, map[string]bool{}, map[string]bool{}
	found, err := sourcetree.Search(ctx, tree, []string{"kustomize.toolkit.fluxcd.io", "sourceRef"}, build.IsKustomization)
	if err != nil {
		return nil, nil, err
	}
	synced := map[string]bool{}
	for _, m := range found {
		if synced[m.File] = true; path.Base(m.File) == SyncFile && Path(m.Unstructured) == path.Dir(path.Dir(m.File)) {
			clusters[Path(m.Unstructured)] = true
		}
	}
	instances, err := sourcetree.Search(ctx, tree, []string{"sync", "url"}, func(o *unstructured.Unstructured) bool { return Syncs(o) != "" })
	if err != nil {
		return nil, nil, err
	}
	for _, m := range instances {
		if info, err := fs.Stat(tree, Syncs(m.Unstructured)); err == nil && info.IsDir() {
			clusters[Syncs(m.Unstructured)] = true
		}
	}
	if err := filetree.Walk(ctx, tree, func(name string, _ fs.DirEntry) error {
		if path.Base(name) == SyncFile && !synced[name] && !strings.HasPrefix(name, ".") {
			clusters[path.Dir(path.Dir(name))] = true
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	applied, paths := appliedBy(clusters, found), map[location]bool{}
	for _, m := range found {
		paths[locationOf(m)] = true
	}
	for _, m := range found {
		at, of := path.Dir(m.File), locationOf(m)
		elsewhere[at] = true
		if !of.isBelow(paths, at) {
			entries[at] = true
		}
		if (of.folder == at || of.folder == path.Dir(at)) && !of.isBelow(applied, at) {
			clusters[of.folder] = true
		}
	}
	if len(entries) > 0 {
		elsewhere = entries
	}
	return slices.Sorted(maps.Keys(clusters)), slices.Sorted(maps.Keys(elsewhere)), nil
}

// Unapplied returns the Kustomizations that nothing in the tree applies: neither one of the clusters, nor a Kustomization, nor the
// kustomization.yaml of another directory.
func Unapplied(ctx context.Context, tree fs.FS, clusters []string) ([]sourcetree.Manifest, error) {
	found, err := sourcetree.Search(ctx, tree, []string{"kustomize.toolkit.fluxcd.io", "sourceRef"}, build.IsKustomization)
	if err != nil {
		return nil, err
	}
	applied := map[string]bool{}
	for _, cluster := range clusters {
		applied[cluster] = true
	}
	for _, m := range found {
		if Path(m.Unstructured) != "." { // most are the roots of other repositories
			applied[Path(m.Unstructured)] = true
		}
	}
	err = filetree.Walk(ctx, tree, func(name string, _ fs.DirEntry) error {
		if !inspect.IsKustomizationFile(name) {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil // it refers to nothing that is known
		}
		for _, entry := range inspect.References(name, text) {
			if target := path.Join(path.Dir(name), entry); !sourcetree.Within(path.Dir(name), target) {
				applied[target] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(m sourcetree.Manifest) bool {
		at := m.File
		for at != "." && !applied[at] {
			at = path.Dir(at)
		}
		return applied[at]
	}), nil
}

// location is a directory of a source. The source has no namespace, because a kustomization.yaml may set it.
type location struct {
	source controllers.ID
	folder string
}

func locationOf(ks sourcetree.Manifest) location {
	return location{build.SourceOf(ks.Unstructured).WithoutNamespace(), Path(ks.Unstructured)}
}

// isBelow reports whether the directory at, or one of its parents, is among the directories of the location's source. It
// ignores the location's own directory.
func (l location) isBelow(directories map[location]bool, at string) bool {
	for above := at; ; above = path.Dir(above) {
		if above != l.folder && directories[location{l.source, above}] {
			return true
		}
		if above == "." {
			return false
		}
	}
}

// maxLevels is the maximum number of levels of Kustomizations that apply each other in appliedBy.
const maxLevels = 100

// appliedBy returns the directories that the Kustomizations in cluster directories apply, directly and through other
// Kustomizations.
func appliedBy(clusters map[string]bool, found []sourcetree.Manifest) map[location]bool {
	applied := map[location]bool{}
	for _, m := range found {
		for folder := range clusters {
			applied[location{locationOf(m).source, folder}] = true
		}
	}
	for range maxLevels {
		before := len(applied)
		for _, m := range found {
			if of := locationOf(m); of.isBelow(applied, path.Dir(m.File)) {
				applied[of] = true
			}
		}
		if len(applied) == before {
			break
		}
	}
	return applied
}

// NotFound returns the error for a repository without a cluster directory, given the other directories with
// Kustomizations.
func NotFound(others []string) error {
	slices.SortStableFunc(others, func(a, b string) int { return likeness(a) - likeness(b) })
	text := "no cluster directory found: no Kustomization applies its own directory, and no FluxInstance syncs one"
	if len(others) > 0 {
		text += "; directories with Kustomizations: " + budget.List(others, budget.Directories)
	}
	return hint.Errorf("set the cluster directory: "+hint.Command("--path %s", append(others, "clusters/production")[0]), "%s", text)
}

// likeness returns 0 for a directory whose path is like that of a cluster, 2 for an archive such as .archive or _archive, and 1
// for others.
func likeness(folder string) int {
	parts := strings.Split(folder, "/")
	switch {
	case slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") }):
		return 2
	case slices.ContainsFunc(parts, func(part string) bool { return part == "clusters" || part == "cluster" || part == "flux" }):
		return 0
	}
	return 1
}
