package revision

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/clone"
)

// Selection selects the two revisions of a clone to compare.
type Selection struct {
	Checkout *git.Clone
	// Base is a revision, or clone.Auto for the base that the CI system or the clone specifies. Head is the new revision, or ""
	// for the work tree. MergeBase compares with the merge base of both.
	Base, Head string
	MergeBase  bool
	// Fetch fetches commits and files that the clone does not have.
	Fetch bool
	// Env reads the environment of the CI system.
	Env            func(string) string
	Warn, Announce func(format string, args ...any)
}

// Target returns the revision to compare with.
func (s Selection) Target(ctx context.Context) (clone.Target, error) {
	if s.Base == clone.Auto {
		t, err := clone.DetectBase(ctx, s.Env, s.Checkout)
		if t.Assumed != "" {
			s.Warn("%s does not expose the pull request's target branch: comparing with %s", t.Assumed, t.Name)
		}
		return t, err
	}
	return clone.Target{Revision: s.Base, Name: s.Base, Merged: s.MergeBase}, nil
}

// Find returns the base and the new revision.
func (s Selection) Find(ctx context.Context, t clone.Target) (base, head repository.Revision, err error) {
	from, err := s.commit(ctx, t.Revision)
	if err != nil {
		return base, head, err
	}
	name, bare := s.Head, s.Checkout.Root() == ""
	if name == "" && (bare || t.Merged) {
		name = "HEAD"
	}
	if name != "" {
		to, err := s.commit(ctx, name)
		if err != nil {
			return base, head, err
		}
		if from, err = s.mergedAt(ctx, t, name, from, to); err != nil {
			return base, head, err
		}
		if head.Tree, err = s.tree(ctx, to); err != nil {
			return base, head, err
		}
	}
	if s.Head == "" && !bare {
		work, err := s.Checkout.WorkTree(ctx)
		if err != nil {
			return base, head, err
		}
		head.Tree, name = work, "the work tree"
	}
	tree, err := s.tree(ctx, from)
	return repository.Revision{Tree: tree, Name: t.Name}, repository.Revision{Tree: head.Tree, Name: name}, err
}

// mergedAt returns the merge base of from and to if MergeBase applies to the target, else from.
func (s Selection) mergedAt(ctx context.Context, t clone.Target, name string, from, to plumbing.Hash) (plumbing.Hash, error) {
	if !t.Merged {
		return from, nil
	}
	search := s.Checkout.History().MergeBase
	if s.Fetch {
		search = s.Checkout.Fetcher().MergeBase
	}
	base, err := search(ctx, from, to)
	if errors.Is(err, git.ErrUnrelated) && s.Checkout.Shallow() {
		return base, hint.Errorf("the clone is shallow; fetch the history: git fetch --unshallow origin, or use --fetch", "finding the merge base of %s and %s: %w", name, t.Name, err)
	}
	if err != nil {
		return base, fmt.Errorf("finding the merge base of %s and %s: %w", name, t.Name, err)
	}
	if base == to {
		return base, s.contained(t, name)
	}
	return base, nil
}

// contained reports a revision that the base contains: there are no commits to
// compare. A pipeline for such a commit would succeed whatever the commit changes.
func (s Selection) contained(t clone.Target, name string) error {
	switch {
	case t.Proposed:
		s.Warn("%s is contained in %s: check out the head of the pull request to compare its commits", name, t.Name)
	case t.Pushed != "":
		return hint.Errorf("compare with the commit before the push, e.g. --base HEAD~1, or run the command for pull requests only",
			"%s is not building a pull request, and %s is contained in %s: there is nothing to compare", t.Pushed, name, t.Name)
	case s.Base == clone.Auto && s.Head != "":
		s.Warn("%s is contained in %s: there is nothing to compare", name, t.Name)
	case s.Base == clone.Auto:
		s.Warn("%s is contained in %s: only uncommitted changes are compared", name, t.Name)
	}
	return nil
}

// tree returns the tree of a commit, with the files that a partial clone does
// not have yet.
func (s Selection) tree(ctx context.Context, commit plumbing.Hash) (repository.Tree, error) {
	if s.Fetch && s.Checkout.Partial() {
		s.Announce("fetching the files of commit %s", commit)
		if err := s.Checkout.Fetcher().Files(ctx, commit); err != nil {
			return nil, hint.Errorf(fetchAgain(err), "fetching the files of commit %s: %w", commit, err)
		}
	}
	return s.Checkout.At(commit)
}

// commit resolves a revision.
func (s Selection) commit(ctx context.Context, name string) (plumbing.Hash, error) {
	found, err := s.Checkout.Resolve(ctx, name)
	var unknown *git.UnknownError
	if !errors.As(err, &unknown) {
		return found, err
	}
	if !s.Fetch {
		return found, hint.Errorf(fetchRemedy(unknown), "%w", err)
	}
	s.Announce("fetching %s", name)
	if err := s.fetchRevision(ctx, name); err != nil {
		return found, hint.Errorf(fetchAgain(err), "fetching %s: %w", name, err)
	}
	if found, err = s.Checkout.Resolve(ctx, name); err != nil {
		return found, hint.Errorf("use a branch, tag or commit of origin", "%w", err)
	}
	return found, nil
}

// fetchRevision fetches a commit, a branch, or the history that a relative
// revision needs.
func (s Selection) fetchRevision(ctx context.Context, name string) error {
	branch := strings.TrimPrefix(strings.TrimPrefix(name, "refs/heads/"), "origin/")
	switch {
	case plumbing.IsHash(name):
		return s.Checkout.Fetcher().Commit(ctx, name)
	case !relative(name):
		return s.Checkout.Fetcher().Branch(ctx, branch)
	case s.Checkout.Shallow():
		return s.Checkout.Fetcher().Deepen(ctx, 0)
	}
	return nil
}

// relative reports whether a revision is relative to another one.
func relative(name string) bool { return strings.ContainsAny(name, "~^@:{") }

// fetchRemedy returns how to get a revision that the clone does not have.
func fetchRemedy(unknown *git.UnknownError) string {
	branch := strings.TrimPrefix(unknown.Revision, "origin/")
	remedy := "fetch it: " + clone.FetchBranch(branch)
	switch {
	case plumbing.IsHash(branch):
		remedy = "fetch it: git fetch origin " + branch
	case relative(branch):
		remedy = "use a branch, tag or commit of the clone"
		if unknown.Shallow {
			remedy = "fetch the history: git fetch --unshallow origin"
		}
	}
	if unknown.Shallow {
		return "the clone is shallow; " + remedy + ", or use --fetch"
	}
	return remedy
}

// fetchAgain returns the remedy if git cannot fetch from origin.
func fetchAgain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "check the connection to origin with git fetch, or increase --timeout"
	}
	return "check the revision, and the connection to origin with git fetch"
}
