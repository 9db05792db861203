package diff

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/snapshot"
)

// autoBase is the value of --base that selects the target of the pull request.
const autoBase = "auto"

// detectBase returns the branch that a change is proposed for: the target of the
// pull request in a CI system, otherwise the default branch of origin.
func detectBase(a *app.App, repository *snapshot.Repository) (string, error) {
	// GitHub, Gitea and Forgejo Actions, GitLab, Azure Pipelines, Bitbucket
	// Pipelines, Jenkins, Woodpecker and Drone
	for _, variable := range []string{
		"GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "SYSTEM_PULLREQUEST_TARGETBRANCH", "BITBUCKET_PR_DESTINATION_BRANCH",
		"CHANGE_TARGET", "CI_COMMIT_TARGET_BRANCH", "DRONE_TARGET_BRANCH",
	} {
		if branch := strings.TrimPrefix(a.Env(variable), "refs/heads/"); branch != "" {
			return remoteBranch(repository, branch), nil
		}
	}
	if branch := repository.DefaultBranch(); branch != "" {
		return remoteBranch(repository, branch), nil
	}
	return "", clierr.WithHint("set it with --base BRANCH, or let git find the default branch: git remote set-head origin --auto",
		"cannot determine the base: no environment variable of a CI system is set, and the clone does not have the default branch of origin")
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
