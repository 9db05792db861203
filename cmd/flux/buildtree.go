package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
)

// workTree is a directory on disk that stands for the artifact of a source.
type workTree struct {
	root string // absolute
	// git reports that root is the top of a Git work tree.
	git bool
}

// workTreeAround finds the Git work tree that a directory is in. Where there is
// none, the root is the current directory if the directory is below it, and
// else the directory itself: nothing above the root is ever read.
func workTreeAround(folder string) (workTree, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return workTree{}, fmt.Errorf("finding %s: %w", folder, err)
	}
	for at := absolute; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return workTree{at, true}, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	current, err := filepath.Abs(".")
	if err != nil {
		return workTree{}, fmt.Errorf("finding the current directory: %w", err)
	}
	if relative, err := filepath.Rel(current, absolute); err == nil && filepath.IsLocal(relative) {
		return workTree{root: current}, nil
	}
	return workTree{root: absolute}, nil
}

// forSource is the work tree that a Kustomization is built in. Outside of Git it
// is the directory without spec.path where it ends in that: other directories
// of the source are then beside it.
func (w workTree) forSource(folder string, ks *unstructured.Unstructured) workTree {
	if w.git || ks == nil || folder == "" {
		return w
	}
	own, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	absolute, err := filepath.Abs(folder)
	root, ok := strings.CutSuffix(absolute, filepath.Clean(string(filepath.Separator)+own))
	if err != nil || !ok || root == "" {
		return w
	}
	return workTree{root: root}
}

func (w workTree) tree() fs.FS { return workspace.Folder(w.root) }

// inside is a directory on disk as a path in the work tree.
func (w workTree) inside(folder string) (string, error) {
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

// remotes are the addresses that the work tree's repository is known by,
// comparable.
func (w workTree) remotes() map[string]bool {
	known := map[string]bool{}
	config, err := w.tree().Open(".git/config")
	if err != nil {
		return known // a linked work tree, or none
	}
	defer func() { _ = config.Close() }() // nothing was written
	for lines := bufio.NewScanner(config); lines.Scan(); {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if ok && strings.TrimSpace(key) == "url" {
			known[comparable(strings.TrimSpace(value))] = true
		}
	}
	return known
}

// comparable is a repository's address without what differs between ways to
// reach it: ssh://git@example.com/a/b.git and git@example.com:a/b are one.
func comparable(address string) string {
	_, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		rest = strings.Replace(address, ":", "/", 1)
	}
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndex(host, "@")+1:]
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host) + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// localSources maps sources to folders: those named on the command line, and
// the work tree for the source of the Kustomization that is built.
func (o *buildOptions) localSources(work workTree, ks *unstructured.Unstructured) (build.Sources, error) {
	trees := map[build.Reference]fs.FS{}
	if ks != nil {
		trees[build.SourceOf(ks)] = work.forSource(o.path, ks).tree()
	}
	for source, folder := range o.sources {
		parts := strings.Split(source, "/")
		if len(parts) != 3 {
			return nil, hinted("write it as Kind/namespace/name=path", "%q does not name a source", source)
		}
		if err := checkFolder(folder); err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		trees[build.Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}] = workspace.Folder(absolute)
	}
	return func(_ context.Context, source build.Reference) (fs.FS, error) {
		if tree, ok := trees[source]; ok {
			return tree, nil
		}
		return nil, build.ErrNotFound
	}, nil
}

// treesOf are the local sources, and the work tree for every GitRepository
// whose address is one of its remotes.
func (a *app) treesOf(o *buildOptions, work workTree, ks *unstructured.Unstructured) (build.Sources, error) {
	local, err := o.localSources(work, ks)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, source build.Reference) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return a.treeByAddress(ctx, o, work, source)
		}
		return tree, err
	}, nil
}

// treeByAddress is the work tree, if it is a clone of the source.
func (a *app) treeByAddress(ctx context.Context, o *buildOptions, work workTree, source build.Reference) (fs.FS, error) {
	if !work.git || source.Kind != "GitRepository" {
		return nil, build.ErrNotFound
	}
	remotes := work.remotes()
	if len(remotes) == 0 {
		return nil, build.ErrNotFound
	}
	repository, err := a.findSource(ctx, o, work, source)
	if err != nil {
		return nil, err
	}
	if address, _, _ := unstructured.NestedString(repository.Object, "spec", "url"); remotes[comparable(address)] {
		return work.tree(), nil
	}
	return nil, build.ErrNotFound
}
