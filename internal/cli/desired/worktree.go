package desired

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
)

// WorkTree is a local directory that is used as the artifact of a source.
type WorkTree struct {
	root string // absolute
	// git reports that root is the top of a Git work tree.
	git bool
}

// WorkTreeAround finds the Git work tree that a directory is in. Where there is
// none, the root is the current directory if the directory is below it, and
// else the directory itself: nothing above the root is ever read.
func WorkTreeAround(folder string) (WorkTree, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return WorkTree{}, fmt.Errorf("finding %s: %w", folder, err)
	}
	for at := absolute; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return WorkTree{at, true}, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	current, err := filepath.Abs(".")
	if err != nil {
		return WorkTree{}, fmt.Errorf("finding the current directory: %w", err)
	}
	if relative, err := filepath.Rel(current, absolute); err == nil && filepath.IsLocal(relative) {
		return WorkTree{root: current}, nil
	}
	return WorkTree{root: absolute}, nil
}

// ForSource returns the work tree for building a Kustomization. Outside of
// Git, if folder ends in spec.path, the root is folder without spec.path, so
// that the build can read the rest of the source.
func (w WorkTree) ForSource(folder string, ks *unstructured.Unstructured) WorkTree {
	if w.git || ks == nil || folder == "" {
		return w
	}
	own, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	absolute, err := filepath.Abs(folder)
	root, ok := strings.CutSuffix(absolute, filepath.Clean(string(filepath.Separator)+own))
	if err != nil || !ok || root == "" {
		return w
	}
	return WorkTree{root: root}
}

// Tree returns the files of the work tree.
func (w WorkTree) Tree() fs.FS { return workspace.Folder(w.root) }

// Inside returns the path of folder relative to the root of the work tree.
func (w WorkTree) Inside(folder string) (string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", folder, err)
	}
	relative, err := filepath.Rel(w.root, absolute)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("%s is outside of %s", folder, w.root)
	}
	return filepath.ToSlash(relative), nil
}

// remotes returns the remote URLs in the Git configuration of the work tree,
// in comparable form.
func (w WorkTree) remotes() map[string]bool {
	known := map[string]bool{}
	config, err := w.Tree().Open(".git/config")
	if err != nil {
		return known // a linked work tree, or not a Git work tree
	}
	defer func() { _ = config.Close() }() // read-only
	for lines := bufio.NewScanner(config); lines.Scan(); {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if ok && strings.TrimSpace(key) == "url" {
			known[workspace.ComparableAddress(strings.TrimSpace(value))] = true
		}
	}
	return known
}

// LocalSources returns the sources with a local directory: those of
// --local-sources, and the source of ks in the work tree.
func (o *BuildOptions) LocalSources(a *app.App, work WorkTree, ks *unstructured.Unstructured) (build.Sources, error) {
	folders := map[build.Reference]string{}
	for source, folder := range o.Sources {
		parts := strings.Split(source, "/")
		if len(parts) != 3 {
			return nil, clierr.WithHint("use the form Kind/namespace/name=path", "invalid source %q", source)
		}
		if err := CheckFolder(folder); err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		folders[build.Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}] = absolute
	}
	return cached(func(ctx context.Context, source build.Reference) (fs.FS, error) {
		if folder, ok := folders[source]; ok {
			return o.ArtifactOf(ctx, a, work, source, folder)
		}
		if ks != nil && source == build.SourceOf(ks) {
			tree, _, err := o.Artifact(ctx, a, work.ForSource(o.Path, ks), source)
			return tree, err
		}
		return nil, build.ErrNotFound
	}), nil
}

// cached returns sources that are read once. It is safe for concurrent use.
func cached(sources build.Sources) build.Sources {
	var mu sync.Mutex
	known := map[build.Reference]fs.FS{}
	return func(ctx context.Context, source build.Reference) (fs.FS, error) {
		mu.Lock()
		defer mu.Unlock()
		if tree, ok := known[source]; ok {
			return tree, nil
		}
		tree, err := sources(ctx, source)
		if err == nil {
			known[source] = tree
		}
		return tree, err
	}
}

// SourcesWithRemotes returns the local sources and uses the work tree for every
// GitRepository whose URL is one of its remotes and that follows the same
// reference as the source of ks.
func SourcesWithRemotes(a *app.App, o *BuildOptions, work WorkTree, ks *unstructured.Unstructured) (build.Sources, error) {
	local, err := o.LocalSources(a, work, ks)
	if err != nil {
		return nil, err
	}
	return cached(func(ctx context.Context, source build.Reference) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return treeByAddress(ctx, a, o, work, source, ks)
		}
		return tree, err
	}), nil
}

// treeByAddress returns the files of the work tree if it is a clone of the
// source.
func treeByAddress(ctx context.Context, a *app.App, o *BuildOptions, work WorkTree, source build.Reference, ks *unstructured.Unstructured) (fs.FS, error) {
	if !work.git || source.Kind != "GitRepository" {
		return nil, build.ErrNotFound
	}
	remotes := work.remotes()
	if len(remotes) == 0 {
		return nil, build.ErrNotFound
	}
	repository, err := findSource(ctx, a, o, work, source)
	if err != nil {
		return nil, err
	}
	if !remotes[workspace.ComparableAddress(Text(repository, "spec", "url"))] {
		return nil, build.ErrNotFound
	}
	if ks != nil {
		own, err := findSource(ctx, a, o, work, build.SourceOf(ks))
		if err == nil && own.GetKind() == "GitRepository" && build.GitReferenceOf(own) != build.GitReferenceOf(repository) {
			return nil, build.ErrNotFound // another branch or tag of the same repository
		}
	}
	tree, _, err := o.Artifact(ctx, a, work, source)
	return tree, err
}
