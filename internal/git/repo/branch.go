package repo

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// SetBranch sets the branch for the next commits. tip is its newest commit on the server, or "" if
// the branch does not exist. The next commit keeps the current tree and has tip as an additional
// parent, so that the push is a fast-forward.
func (r *Repository) SetBranch(branch, tip string) {
	r.branch = plumbing.NewBranchReferenceName(branch)
	r.known = plumbing.NewHash(tip)
	r.extraParent = r.known
}

// parents returns the parents of the next commit, the parent on the branch first.
func (r *Repository) parents() []plumbing.Hash {
	var parents []plumbing.Hash
	if !r.extraParent.IsZero() && r.extraParent != r.head {
		parents = append(parents, r.extraParent)
	}
	if !r.head.IsZero() {
		parents = append(parents, r.head)
	}
	return parents
}

// Patch returns the changes of the commits that are not pushed, as a unified diff.
func (r *Repository) Patch() (string, error) {
	before := &object.Tree{}
	if !r.base.IsZero() {
		commit, err := object.GetCommit(r.store, r.base)
		if err != nil {
			return "", fmt.Errorf("reading commit %s: %w", r.base, err)
		}
		if before, err = commit.Tree(); err != nil {
			return "", fmt.Errorf("reading the tree of commit %s: %w", r.base, err)
		}
	}
	after, err := r.tree()
	if err != nil {
		return "", err
	}
	changes, err := object.DiffTree(before, after)
	if err != nil {
		return "", fmt.Errorf("comparing the newest commit with %s: %w", r.base, err)
	}
	patch, err := changes.Patch()
	if err != nil {
		return "", fmt.Errorf("comparing the newest commit with %s: %w", r.base, err)
	}
	var text strings.Builder
	if err := patch.Encode(&text); err != nil {
		return "", fmt.Errorf("encoding the diff to %s: %w", r.base, err)
	}
	return text.String(), nil
}
