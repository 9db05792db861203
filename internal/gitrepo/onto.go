package gitrepo

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Onto has the commits that follow go to another branch, whose newest commit
// on the server is tip, "" where it does not exist. They start at the present
// state; what stands on the other branch becomes a parent of the first, so
// that the branch only ever moves forward.
func (r *Repository) Onto(branch, tip string) {
	r.branch = plumbing.NewBranchReferenceName(branch)
	r.known = plumbing.NewHash(tip)
	r.beside = r.known
}

// parents are those of the next commit, each once and the branch's own first.
func (r *Repository) parents() []plumbing.Hash {
	var parents []plumbing.Hash
	if !r.beside.IsZero() && r.beside != r.head {
		parents = append(parents, r.beside)
	}
	if !r.head.IsZero() {
		parents = append(parents, r.head)
	}
	return parents
}

// Patch returns what the commits that are not pushed change, as a unified diff.
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
		return "", fmt.Errorf("writing the difference to %s: %w", r.base, err)
	}
	return text.String(), nil
}
