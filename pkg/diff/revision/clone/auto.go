package clone

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/snapshot"
)

// Auto is the value of --base that selects the target of the pull request.
const Auto = "auto"

// Target is what the revision is compared with.
type Target struct {
	// Revision is a branch, tag or commit, and Name the name of the base in messages.
	Revision, Name string
	// Branch is the branch that sources follow at the base, or "" if it is not known.
	Branch string
	// Merged is set if the base is the merge base with Revision.
	Merged bool
	// Proposed is set if a CI system names the base of a pull request.
	Proposed bool
}

// DetectBase returns what a change is proposed for: the target of the pull
// request in a CI system, otherwise the default branch of origin.
func DetectBase(ctx context.Context, env func(string) string, repository *snapshot.Repository) (Target, error) {
	branch := ""
	// GitHub, Gitea and Forgejo Actions, GitLab, Azure Pipelines, Bitbucket
	// Pipelines, Jenkins, Woodpecker and Drone
	for _, variable := range []string{
		"GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "SYSTEM_PULLREQUEST_TARGETBRANCH", "BITBUCKET_PR_DESTINATION_BRANCH",
		"CHANGE_TARGET", "CI_COMMIT_TARGET_BRANCH", "DRONE_TARGET_BRANCH",
	} {
		if branch = strings.TrimPrefix(env(variable), "refs/heads/"); branch != "" {
			break
		}
	}
	if branch != "" {
		if base := mergedInto(ctx, env, repository); base != "" {
			return Target{Revision: base, Name: branch, Branch: branch, Proposed: true}, nil
		}
		name := remoteBranch(repository, branch)
		return Target{Revision: name, Name: name, Branch: branch, Merged: true, Proposed: true}, nil
	}
	if branch = repository.DefaultBranch(); branch != "" {
		name := remoteBranch(repository, branch)
		return Target{Revision: name, Name: name, Branch: branch, Merged: true}, nil
	}
	return Target{}, hint.Errorf("set it with --base BRANCH, or let git find the default branch: git remote set-head origin --auto",
		"cannot determine the base: no environment variable of a CI system is set, and the clone does not have the default branch of origin")
}

// mergeReference is the reference of the merge of a pull request into its target.
var mergeReference = regexp.MustCompile(`^refs/pull/[0-9]+/merge$`)

// mergedInto returns the commit of the target branch if a CI system has checked
// out the merge of the pull request into it, else "". The merge is the commit
// that the CI system names: any other merge has another first parent.
func mergedInto(ctx context.Context, env func(string) string, repository *snapshot.Repository) string {
	head, err := repository.Resolve(ctx, "HEAD")
	if err != nil {
		return ""
	}
	for reference, commit := range map[string]string{"GITHUB_REF": "GITHUB_SHA", "BUILD_SOURCEBRANCH": "BUILD_SOURCEVERSION"} {
		if !mergeReference.MatchString(env(reference)) || env(commit) != head.String() {
			continue
		}
		parents, err := repository.Parents(head)
		if err == nil && len(parents) == 2 {
			return parents[0].String()
		}
	}
	// GitLab sets this variable only in pipelines for merged results.
	if env("CI_COMMIT_SHA") == head.String() {
		return env("CI_MERGE_REQUEST_TARGET_BRANCH_SHA")
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
