package remote

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// SetBranch sets the branch for the next commits. tip is its newest commit on the server, or "" if
// the branch does not exist. The next commit is based on the current tree and has tip as an
// additional parent, so that the push is a fast-forward.
func (b *Branch) SetBranch(branch, tip string) {
	b.branch = plumbing.NewBranchReferenceName(branch)
	b.known = plumbing.NewHash(tip)
	b.extraParent = b.known
}

// parents returns the parents of the next commit, the parent on the branch first.
func (b *Branch) parents() []plumbing.Hash {
	var parents []plumbing.Hash
	if !b.extraParent.IsZero() && b.extraParent != b.head {
		parents = append(parents, b.extraParent)
	}
	if !b.head.IsZero() {
		parents = append(parents, b.head)
	}
	return parents
}

// Patch returns the changes of the commits that are not pushed, as a unified diff.
func (b *Branch) Patch() (string, error) {
	before, err := b.treeAt(b.base)
	if err != nil {
		return "", err
	}
	after, err := b.treeAt(b.head)
	if err != nil {
		return "", err
	}
	changes, err := object.DiffTree(before, after)
	if err != nil {
		return "", fmt.Errorf("comparing the newest commit with %s: %w", b.base, err)
	}
	patch, err := changes.Patch()
	if err != nil {
		return "", fmt.Errorf("comparing the newest commit with %s: %w", b.base, err)
	}
	var text strings.Builder
	if err := patch.Encode(&text); err != nil {
		return "", fmt.Errorf("encoding the diff to %s: %w", b.base, err)
	}
	return text.String(), nil
}

func (b *Branch) treeAt(commit plumbing.Hash) (*object.Tree, error) {
	if commit.IsZero() {
		return &object.Tree{}, nil
	}
	found, err := object.GetCommit(b.store.objects.Storer(), commit)
	if err != nil {
		return nil, fmt.Errorf("reading commit %s: %w", commit, err)
	}
	files, err := found.Tree()
	if err != nil {
		return nil, fmt.Errorf("reading the tree of commit %s: %w", commit, err)
	}
	return files, nil
}
