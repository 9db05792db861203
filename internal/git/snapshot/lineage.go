package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ErrNoLineage is returned if a commit is not among the first parents of another one.
var ErrNoLineage = errors.New("not in the history of first parents")

// Lineage returns the commits from base to head along first parents, oldest first. These are the
// states of a branch into which pull requests are merged.
func Lineage(ctx context.Context, r *Repository, base, head plumbing.Hash) ([]plumbing.Hash, error) {
	commits := []plumbing.Hash{head}
	for at := head; at != base; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(commits) == historyBound {
			return nil, fmt.Errorf("more than %d commits between them", historyBound)
		}
		parents, err := r.Parents(at)
		if err == nil && len(parents) > 0 {
			_, err = r.Parents(parents[0])
		}
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			return nil, ErrIncomplete
		case err != nil:
			return nil, err
		case len(parents) == 0:
			return nil, ErrNoLineage
		}
		at = parents[0]
		commits = append(commits, at)
	}
	slices.Reverse(commits)
	return commits, nil
}

// Describe returns a commit and the files that it changes against its first parent, sorted.
func Describe(ctx context.Context, r *Repository, commit plumbing.Hash) (info CommitInfo, files []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.git.CommitObject(commit)
	if err != nil {
		return info, nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	after, err := c.Tree()
	if err != nil {
		return info, nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	before := &object.Tree{}
	if len(c.ParentHashes) > 0 {
		parent, err := r.git.CommitObject(c.ParentHashes[0])
		if err == nil {
			before, err = parent.Tree()
		}
		if err != nil {
			return info, nil, fmt.Errorf("reading commit %s: %w", c.ParentHashes[0], err)
		}
	}
	changes, err := object.DiffTreeWithOptions(ctx, before, after, nil)
	if err != nil {
		return info, nil, fmt.Errorf("comparing commit %s with its parent: %w", commit, err)
	}
	for _, change := range changes {
		for _, name := range []string{change.From.Name, change.To.Name} {
			if name != "" && !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	slices.Sort(files)
	return describe(c), files, nil
}
