package testrun

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/repository/clone"
	"github.com/fluxkit/flux/pkg/testrun/sources"
)

// Open returns the repository that contains a directory, "" for the current directory, at a
// revision, "" for its work tree. Files that Git ignores are not part of a clone.
func Open(ctx context.Context, folder, revision string) (*sources.Repository, func() error, error) {
	done := func() error { return nil }
	work, err := git.Around(folder)
	if err != nil {
		return nil, done, err
	}
	r := &sources.Repository{Tree: work.Tree()}
	if folder != "" {
		if r.Path, err = work.Inside(folder); err != nil {
			return nil, done, err
		}
	}
	if !work.Git {
		if revision != "" {
			return nil, done, hint.Errorf("run the command in a clone of the repository", "revision %q: %s is not in a Git repository", revision, filepath.Clean(work.Root))
		}
		return r, done, nil
	}
	checkout, err := git.Open(work.Root)
	if err != nil {
		return nil, done, fmt.Errorf("opening %s: %w", filepath.Clean(work.Root), err)
	}
	if r.Remotes, err = checkout.Remotes(); err != nil {
		return nil, checkout.Close, err
	}
	r.Branches = clone.Branches(checkout, revision)
	if revision == "" {
		r.Tree, err = checkout.WorkTree(ctx)
		return r, checkout.Close, err
	}
	commit, err := checkout.Resolve(ctx, revision)
	if err == nil {
		r.Tree, err = checkout.At(commit)
	}
	return r, checkout.Close, err
}
