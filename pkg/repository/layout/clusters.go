// Package layout knows how repositories are laid out: where the directories of their clusters are, and what installs Flux.
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
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxClusters bounds the clusters that a pattern matches: it is matched with untrusted files.
const maxClusters = 1000

// PatternError is returned for a pattern that is invalid, or that matches no directory.
type PatternError struct {
	Pattern, Problem string
}

func (e *PatternError) Error() string { return e.Pattern + ": " + e.Problem }

// IsPattern reports whether a path may match several directories.
func IsPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// Match returns the directories of either revision that a pattern matches, sorted. The pattern has the
// syntax of path.Match; like in a shell, it matches no hidden directory unless it begins with a dot.
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

// Roots returns the directories of clusters: those that a Kustomization in them applies with itself, those that a
// FluxInstance syncs, and those in which bootstrap has begun. others are the other directories with Kustomizations: those that
// no other Kustomization applies, or all if there are none.
func Roots(ctx context.Context, tree fs.FS) (roots, others []string, err error) {
	applied, alone, elsewhere, entries, synced := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	found, err := sourcetree.Search(ctx, tree, []string{"kustomize.toolkit.fluxcd.io", "sourceRef"}, build.IsKustomization)
	if err != nil {
		return nil, nil, err
	}
	appliers := map[location]map[string]bool{} // the directories of the Kustomizations that apply a directory
	for _, m := range found {
		of := location{sourceName(m.Unstructured), Path(m.Unstructured)}
		if appliers[of] == nil {
			appliers[of] = map[string]bool{}
		}
		appliers[of][path.Dir(m.File)] = true
	}
	for _, m := range found {
		at, folder := path.Dir(m.File), Path(m.Unstructured)
		elsewhere[at], synced[m.File] = true, true
		entry := !appliedElsewhere(appliers, at, location{sourceName(m.Unstructured), folder})
		if entry {
			entries[at] = true
		}
		switch {
		case folder != at && folder != path.Dir(at) || !entry:
		case includes(tree, folder, m.File, map[string]bool{}):
			applied[folder] = true
		default:
			alone[folder] = true
		}
	}
	instances, err := sourcetree.Search(ctx, tree, []string{"sync", "url"}, func(o *unstructured.Unstructured) bool { return Syncs(o) != "" })
	if err != nil {
		return nil, nil, err
	}
	for _, m := range instances {
		if info, err := fs.Stat(tree, Syncs(m.Unstructured)); err == nil && info.IsDir() {
			applied[Syncs(m.Unstructured)] = true
		}
	}
	err = filetree.Walk(ctx, tree, func(name string, _ fs.DirEntry) error {
		if path.Base(name) == SyncFile && !synced[name] && !strings.HasPrefix(name, ".") {
			applied[path.Dir(path.Dir(name))] = true
		}
		return nil
	})
	if len(applied) == 0 {
		applied = alone
	}
	if len(entries) > 0 {
		elsewhere = entries
	}
	return slices.Sorted(maps.Keys(applied)), slices.Sorted(maps.Keys(elsewhere)), err
}

// NotFound returns the error for a repository without a directory of a cluster, given the other directories with
// Kustomizations.
func NotFound(others []string) error {
	text := "no directory of a cluster found: no Kustomization applies its own directory, and no FluxInstance syncs one"
	if len(others) > 0 {
		text += "; directories with Kustomizations: " + budget.List(others, budget.Directories)
	}
	return hint.Errorf("set the directory of the cluster: "+hint.Command("--path %s", append(others, "clusters/production")[0]), "%s", text)
}

// location is a directory of a source.
type location struct {
	source controllers.ID
	folder string
}

// sourceName returns the source of a Kustomization without its namespace, which a kustomization.yaml may set.
func sourceName(ks *unstructured.Unstructured) controllers.ID {
	return build.SourceOf(ks).WithoutNamespace()
}

// appliedElsewhere reports whether a Kustomization in another directory applies a directory, or one above it other than that of
// a Kustomization in the directory, which is ks.
func appliedElsewhere(appliers map[location]map[string]bool, at string, ks location) bool {
	for above := at; ; above = path.Dir(above) {
		from := appliers[location{ks.source, above}]
		if n := len(from); above != ks.folder && (n > 1 || n == 1 && !from[at]) {
			return true
		}
		if above == "." {
			return false
		}
	}
}

// includes reports whether the build of a directory reads a file: as a resource of its kustomization.yaml, or because it has none.
func includes(tree fs.FS, folder, file string, seen map[string]bool) bool {
	if seen[folder] {
		return false
	}
	seen[folder] = true
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		text, err := sourcetree.ReadWithin(budget.New(budget.Default()), tree, path.Join(folder, name))
		if err != nil {
			continue
		}
		var content struct{ Resources, Components, Bases []string }
		if budget.Unmarshal(name, text, &content) != nil {
			return false // kustomize-controller cannot build it either
		}
		return slices.ContainsFunc(slices.Concat(content.Resources, content.Components, content.Bases), func(entry string) bool {
			entry = path.Join(folder, entry)
			return entry == file || includes(tree, entry, file, seen)
		})
	}
	if path.Dir(file) == folder {
		return true
	}
	below, inside := strings.CutPrefix(file, folder+"/")
	if folder == "." {
		below, inside = file, true
	}
	next, _, _ := strings.Cut(below, "/")
	return inside && includes(tree, path.Join(folder, next), file, seen)
}
