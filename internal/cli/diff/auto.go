package diff

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/snapshot"
)

// autoBase is the value of --base that selects the target of the pull request.
const autoBase = "auto"

// target is what the revision is compared with.
type target struct {
	// revision is a branch, tag or commit, and name the name of the base in messages.
	revision, name string
	// branch is the branch that sources follow at the base, or "" if it is not known.
	branch string
	// merged is set if the base is the merge base with revision.
	merged bool
	// proposed is set if a CI system names the base of a pull request.
	proposed bool
}

// detectBase returns what a change is proposed for: the target of the pull
// request in a CI system, otherwise the default branch of origin.
func detectBase(ctx context.Context, a *app.App, repository *snapshot.Repository) (target, error) {
	branch := ""
	// GitHub, Gitea and Forgejo Actions, GitLab, Azure Pipelines, Bitbucket
	// Pipelines, Jenkins, Woodpecker and Drone
	for _, variable := range []string{
		"GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "SYSTEM_PULLREQUEST_TARGETBRANCH", "BITBUCKET_PR_DESTINATION_BRANCH",
		"CHANGE_TARGET", "CI_COMMIT_TARGET_BRANCH", "DRONE_TARGET_BRANCH",
	} {
		if branch = strings.TrimPrefix(a.Env(variable), "refs/heads/"); branch != "" {
			break
		}
	}
	if branch != "" {
		if base := mergedInto(ctx, a, repository); base != "" {
			return target{revision: base, name: branch, branch: branch, proposed: true}, nil
		}
		name := remoteBranch(repository, branch)
		return target{revision: name, name: name, branch: branch, merged: true, proposed: true}, nil
	}
	if branch = repository.DefaultBranch(); branch != "" {
		name := remoteBranch(repository, branch)
		return target{revision: name, name: name, branch: branch, merged: true}, nil
	}
	return target{}, hint.Errorf("set it with --base BRANCH, or let git find the default branch: git remote set-head origin --auto",
		"cannot determine the base: no environment variable of a CI system is set, and the clone does not have the default branch of origin")
}

// mergeReference is the reference of the merge of a pull request into its target.
var mergeReference = regexp.MustCompile(`^refs/pull/[0-9]+/merge$`)

// mergedInto returns the commit of the target branch if a CI system has checked
// out the merge of the pull request into it, else "". The merge is the commit
// that the CI system names: any other merge has another first parent.
func mergedInto(ctx context.Context, a *app.App, repository *snapshot.Repository) string {
	head, err := repository.Resolve(ctx, "HEAD")
	if err != nil {
		return ""
	}
	for reference, commit := range map[string]string{"GITHUB_REF": "GITHUB_SHA", "BUILD_SOURCEBRANCH": "BUILD_SOURCEVERSION"} {
		if !mergeReference.MatchString(a.Env(reference)) || a.Env(commit) != head.String() {
			continue
		}
		parents, err := repository.Parents(head)
		if err == nil && len(parents) == 2 {
			return parents[0].String()
		}
	}
	// GitLab sets this variable only in pipelines for merged results.
	if a.Env("CI_COMMIT_SHA") == head.String() {
		return a.Env("CI_MERGE_REQUEST_TARGET_BRANCH_SHA")
	}
	return ""
}

// remoteBranch prefers the branch of origin, because a local one may be
// outdated.
func remoteBranch(repository *snapshot.Repository, branch string) string {
	name := fmt.Sprintf("refs/remotes/origin/%s", branch)
	if _, err := repository.Exactly(name); err == nil {
		return "origin/" + branch
	}
	return branch
}
