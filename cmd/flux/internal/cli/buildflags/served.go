package buildflags

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fluxkit/flux/internal/git/snapshot"
	"github.com/fluxkit/flux/internal/git/workspace"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/repository/clone"
	"github.com/fluxkit/flux/pkg/testrun"
)

// Served returns the repository that contains a folder or, for "", the current directory, at a
// revision or, for "", its work tree. Files that Git ignores are not part of a clone.
func Served(ctx context.Context, folder, revision string) (*testrun.Repository, func() error, error) {
	done := func() error { return nil }
	tree, err := workspace.Around(folder)
	if err != nil {
		return nil, done, err
	}
	r := &testrun.Repository{Tree: tree.Tree()}
	if folder != "" {
		if r.Path, err = tree.Inside(folder); err != nil {
			return nil, done, err
		}
	}
	if !tree.Git {
		if revision != "" {
			return nil, done, hint.Errorf("run the command in a clone of the repository", "revision %q: %s is not in a Git repository", revision, filepath.Clean(tree.Root))
		}
		return r, done, nil
	}
	for address := range tree.Remotes() {
		r.Remotes = append(r.Remotes, address)
	}
	checkout, err := snapshot.Open(tree.Root)
	if err != nil {
		return nil, done, fmt.Errorf("opening %s: %w", filepath.Clean(tree.Root), err)
	}
	r.Branches = clone.Branches(checkout, revision)
	r.Tree, err = filesAt(ctx, checkout, revision)
	return r, checkout.Close, err
}

// filesAt returns the files of a revision, or of the work tree.
func filesAt(ctx context.Context, checkout *snapshot.Repository, revision string) (*snapshot.Tree, error) {
	if revision == "" {
		return checkout.WorkTree(ctx)
	}
	commit, err := checkout.Resolve(ctx, revision)
	var unknown *snapshot.UnknownError
	if errors.As(err, &unknown) {
		return nil, hint.Errorf("name a branch, tag or commit that the clone has, or fetch it with git", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return checkout.At(commit)
}

// Names returns the branches and tags of the clone in the current directory, for completion.
func Names() []string {
	repository, err := snapshot.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = repository.Close() }() // read-only
	branches, tags, err := repository.Names()
	if err != nil {
		return nil
	}
	return append(branches, tags...)
}
