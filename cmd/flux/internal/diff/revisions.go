package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/clone"
)

// revisions finds the two revisions to compare, and fetches them if that is
// allowed.
type revisions struct {
	*baseOptions
	app      *app.App
	checkout *git.Clone
}

// target returns what the flags select as the base.
func (r revisions) target(ctx context.Context) (clone.Target, error) {
	if r.base == clone.Auto {
		t, err := clone.DetectBase(ctx, r.app.Env, r.checkout)
		if t.Assumed != "" {
			r.app.UI.Warning("%s does not pass the target branch of the pull request: comparing with %s", t.Assumed, t.Name)
		}
		return t, err
	}
	return clone.Target{Revision: r.base, Name: r.base, Merged: r.mergeBase}, nil
}

// find returns the base and the new revision.
func (r revisions) find(ctx context.Context, t clone.Target) (base, head repository.Revision, err error) {
	from, err := r.commit(ctx, t.Revision)
	if err != nil {
		return base, head, err
	}
	name, bare := r.head, r.checkout.Root() == ""
	if name == "" && (bare || t.Merged) {
		name = "HEAD"
	}
	if name != "" {
		to, err := r.commit(ctx, name)
		if err != nil {
			return base, head, err
		}
		if from, err = r.mergedAt(ctx, t, name, from, to); err != nil {
			return base, head, err
		}
		if head.Tree, err = r.tree(ctx, to); err != nil {
			return base, head, err
		}
	}
	if r.head == "" && !bare {
		work, err := r.checkout.WorkTree(ctx)
		if err != nil {
			return base, head, err
		}
		head.Tree, name = work, "the work tree"
	}
	tree, err := r.tree(ctx, from)
	return repository.Revision{Tree: tree, Name: t.Name}, repository.Revision{Tree: head.Tree, Name: name}, err
}

// mergedAt returns the merge base of two commits if the base is one, else the first.
func (r revisions) mergedAt(ctx context.Context, t clone.Target, name string, from, to plumbing.Hash) (plumbing.Hash, error) {
	if !t.Merged {
		return from, nil
	}
	search := r.checkout.History().MergeBase
	if r.fetch {
		search = r.checkout.Fetcher().MergeBase
	}
	base, err := search(ctx, from, to)
	if errors.Is(err, git.ErrUnrelated) && r.checkout.Shallow() {
		return base, hint.Errorf("the clone is shallow; fetch the history: git fetch --unshallow origin, or use --fetch", "finding the merge base of %s and %s: %w", name, t.Name, err)
	}
	if err != nil {
		return base, fmt.Errorf("finding the merge base of %s and %s: %w", name, t.Name, err)
	}
	if base == to {
		return base, r.contained(t, name)
	}
	return base, nil
}

// contained reports a revision that the base contains: there are no commits to
// compare. A pipeline for such a commit would succeed whatever the commit changes.
func (r revisions) contained(t clone.Target, name string) error {
	switch {
	case t.Proposed:
		r.app.UI.Warning("%s is contained in %s: check out the head of the pull request to compare its commits", name, t.Name)
	case t.Pushed != "":
		return hint.Errorf("compare with the commit before the push, e.g. --base HEAD~1, or run the command for pull requests only",
			"%s builds no pull request, and %s is contained in %s: there is nothing to compare", t.Pushed, name, t.Name)
	case r.base == clone.Auto && r.head != "":
		r.app.UI.Warning("%s is contained in %s: there is nothing to compare", name, t.Name)
	case r.base == clone.Auto:
		r.app.UI.Warning("%s is contained in %s: only uncommitted changes are compared", name, t.Name)
	}
	return nil
}

// tree returns the tree of a commit, with the files that a partial clone does
// not have yet.
func (r revisions) tree(ctx context.Context, commit plumbing.Hash) (repository.Tree, error) {
	if r.fetch && r.checkout.Partial() {
		r.announce(r.app)("fetching the files of commit %s", commit)
		if err := r.checkout.Fetcher().Files(ctx, commit); err != nil {
			return nil, hint.Errorf(fetchAgain(err), "fetching the files of commit %s: %w", commit, err)
		}
	}
	return r.checkout.At(commit)
}

// commit resolves a revision.
func (r revisions) commit(ctx context.Context, name string) (plumbing.Hash, error) {
	found, err := r.checkout.Resolve(ctx, name)
	var unknown *git.UnknownError
	if !errors.As(err, &unknown) {
		return found, err
	}
	if !r.fetch {
		return found, hint.Errorf(fetchRemedy(unknown), "%w", err)
	}
	r.announce(r.app)("fetching %s", name)
	if err := r.fetchRevision(ctx, name); err != nil {
		return found, hint.Errorf(fetchAgain(err), "fetching %s: %w", name, err)
	}
	if found, err = r.checkout.Resolve(ctx, name); err != nil {
		return found, hint.Errorf("name a branch, tag or commit of origin", "%w", err)
	}
	return found, nil
}

// fetchRevision fetches a commit, a branch, or the history that a relative
// revision needs.
func (r revisions) fetchRevision(ctx context.Context, name string) error {
	branch := strings.TrimPrefix(strings.TrimPrefix(name, "refs/heads/"), "origin/")
	switch {
	case plumbing.IsHash(name):
		return r.checkout.Fetcher().Commit(ctx, name)
	case !relative(name):
		return r.checkout.Fetcher().Branch(ctx, branch)
	case r.checkout.Shallow():
		return r.checkout.Fetcher().Deepen(ctx, 0)
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
		remedy = "name a branch, tag or commit that the clone has"
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
