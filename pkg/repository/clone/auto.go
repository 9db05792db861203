package clone

import (
	"cmp"
	"context"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
)

// Auto is the value of --base that selects the target of the pull request.
const Auto = "auto"

// Target is the base of a comparison.
type Target struct {
	// Revision is a branch, tag or commit, and Name the name of the base in messages.
	Revision, Name string
	// Branch is the branch that sources follow at the base, or "" if unknown.
	Branch string
	// Merged is set if the base is the merge base with Revision.
	Merged bool
	// Proposed is set if a CI system exposes the base of a pull request.
	Proposed bool
	// Assumed is the CI system if it does not expose the pull request's target: the base is then the
	// default branch.
	Assumed string
	// Pushed is the CI system if it builds a branch instead of a pull request.
	Pushed string
}

// DetectBase returns the base of a proposed change: the target of the pull request in
// a CI system, otherwise the default branch of origin.
func DetectBase(ctx context.Context, env func(string) string, clone *git.Clone) (Target, error) {
	request := ci.Read(env)
	if branch := request.Target; branch != "" {
		if base := mergedInto(ctx, request, clone); base != "" {
			return Target{Revision: base, Name: branch, Branch: branch, Proposed: true}, nil
		}
		name := remoteBranch(clone, branch)
		return Target{Revision: name, Name: name, Branch: branch, Merged: true, Proposed: true}, nil
	}
	if branch := clone.DefaultBranch(); branch != "" {
		name := remoteBranch(clone, branch)
		t := Target{Revision: name, Name: name, Branch: branch, Merged: true}
		if request.Number > 0 {
			t.Assumed = request.System
		} else {
			t.Pushed = request.System
		}
		return t, nil
	}
	return Target{}, hint.Errorf("set it with --base BRANCH, or let git find the default branch: git remote set-head origin --auto",
		"cannot determine the base: no CI environment variables are set, and the clone does not contain the default branch of origin")
}

// mergedInto returns the commit of the target branch if a CI system has checked out the pull
// request's merge commit, else "". It only accepts the commit from the CI variables, because other
// merges have another first parent.
func mergedInto(ctx context.Context, request ci.PullRequest, clone *git.Clone) string {
	head, err := clone.Resolve(ctx, "HEAD")
	if err != nil || head.String() != request.Commit {
		return ""
	}
	if request.Merge {
		if parents, err := clone.History().Parents(head); err == nil && len(parents) == 2 {
			return parents[0].String()
		}
	}
	return request.Into
}

// Proposed returns the last commit of the pull request: the new revision, or the second parent of
// the merge that a CI system has checked out. It returns "" if unknown.
func Proposed(ctx context.Context, clone *git.Clone, name string, t Target) string {
	head, err := clone.Resolve(ctx, cmp.Or(name, "HEAD"))
	if err != nil {
		return ""
	}
	if parents, err := clone.History().Parents(head); err == nil && t.Proposed && len(parents) == 2 && parents[0].String() == t.Revision {
		return parents[1].String()
	}
	return head.String()
}

// remoteBranch prefers the branch of origin, because a local one may be
// outdated.
func remoteBranch(clone *git.Clone, branch string) string {
	if _, err := clone.Commit(git.Revision{Name: "refs/remotes/origin/" + branch}); err == nil {
		return "origin/" + branch
	}
	return branch
}
