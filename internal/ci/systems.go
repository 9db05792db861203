package ci

import (
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
)

// system describes a CI system by the names of its variables.
type system struct {
	name string
	// signs lists variables that only this system sets, as NAME or NAME=value.
	// The variable target also identifies the system.
	signs []string
	// host is the kind of Git host, "" if complete determines it.
	host string
	// See the fields of PullRequest.
	target, number, commit, head, into, server, repository, ca, run string
	// more lists the variables that complete reads.
	more     []string
	complete func(env func(string) string, p *PullRequest)
}

// runs reports whether the environment belongs to the system.
func (s system) runs(env func(string) string) bool {
	return s.target != "" && env(s.target) != "" || slices.ContainsFunc(s.signs, func(sign string) bool {
		name, value, exact := strings.Cut(sign, "=")
		return exact && strings.EqualFold(env(name), value) || !exact && env(name) != ""
	})
}

// systems lists the supported CI systems. Gitea also sets the variables of
// GitHub, and Forgejo the variables of Gitea and GitHub.
var systems = []system{
	{
		name: "Forgejo Actions", signs: []string{"FORGEJO_ACTIONS=true"}, host: Gitea,
		commit: "GITHUB_SHA", server: "GITHUB_SERVER_URL", repository: "GITHUB_REPOSITORY",
		more: actionsVariables, complete: actions,
	},
	{
		name: "Gitea Actions", signs: []string{"GITEA_ACTIONS=true"}, host: Gitea,
		commit: "GITHUB_SHA", server: "GITHUB_SERVER_URL", repository: "GITHUB_REPOSITORY",
		more: actionsVariables, complete: actions,
	},
	{
		name: "GitHub Actions", signs: []string{"GITHUB_ACTIONS=true"}, host: GitHub,
		target: "GITHUB_BASE_REF", commit: "GITHUB_SHA", server: "GITHUB_SERVER_URL", repository: "GITHUB_REPOSITORY",
		more: actionsVariables, complete: actions,
	},
	{
		name: "GitLab CI", signs: []string{"GITLAB_CI=true"}, host: GitLab,
		target: "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", number: "CI_MERGE_REQUEST_IID", commit: "CI_COMMIT_SHA",
		head: "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", into: "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
		server: "CI_SERVER_URL", repository: "CI_MERGE_REQUEST_PROJECT_PATH", ca: "CI_SERVER_TLS_CA_FILE", run: "CI_JOB_URL",
		more: []string{"CI_MERGE_REQUEST_PROJECT_ID", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID"}, complete: gitlab,
	},
	{
		name: "Azure Pipelines", signs: []string{"TF_BUILD=true"},
		target: "SYSTEM_PULLREQUEST_TARGETBRANCH", number: "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", commit: "BUILD_SOURCEVERSION",
		head: "SYSTEM_PULLREQUEST_SOURCECOMMITID", server: "BUILD_REPOSITORY_URI", repository: "BUILD_REPOSITORY_NAME",
		more: []string{"BUILD_SOURCEBRANCH", "BUILD_REPOSITORY_PROVIDER", "SYSTEM_PULLREQUEST_ISFORK"}, complete: azure,
	},
	{
		name: "Bitbucket Pipelines", signs: []string{"BITBUCKET_BUILD_NUMBER"}, host: BitbucketCloud,
		target: "BITBUCKET_PR_DESTINATION_BRANCH", number: "BITBUCKET_PR_ID", head: "BITBUCKET_COMMIT", repository: "BITBUCKET_REPO_FULL_NAME",
		complete: func(_ func(string) string, p *PullRequest) { p.Server = "https://bitbucket.org" },
	},
	{
		// GIT_COMMIT may be a merge commit that exists only in Jenkins.
		name: "Jenkins", signs: []string{"JENKINS_URL"}, target: "CHANGE_TARGET", number: "CHANGE_ID", server: "CHANGE_URL", run: "BUILD_URL",
		more: []string{"CHANGE_FORK"}, complete: func(env func(string) string, p *PullRequest) {
			p.fromPage(env("CHANGE_URL"))
			p.Fork = env("CHANGE_FORK") != ""
		},
	},
	{
		name: "Woodpecker", signs: []string{"CI=woodpecker"},
		target: "CI_COMMIT_TARGET_BRANCH", number: "CI_COMMIT_PULL_REQUEST", head: "CI_COMMIT_SHA", server: "CI_FORGE_URL", repository: "CI_REPO", run: "CI_PIPELINE_URL",
		more: []string{"CI_FORGE_TYPE"}, complete: func(env func(string) string, p *PullRequest) {
			p.Host = forges[env("CI_FORGE_TYPE")]
		},
	},
	{
		// DRONE_TARGET_BRANCH is also set for pushes.
		name: "Drone", signs: []string{"DRONE=true", "DRONE_PULL_REQUEST"}, number: "DRONE_PULL_REQUEST", head: "DRONE_COMMIT_SHA", server: "DRONE_COMMIT_LINK", run: "DRONE_BUILD_LINK",
		more: []string{"DRONE_TARGET_BRANCH"}, complete: func(env func(string) string, p *PullRequest) {
			p.fromPage(env("DRONE_COMMIT_LINK"))
			if p.Number > 0 {
				p.Target = env("DRONE_TARGET_BRANCH")
			}
		},
	},
	{
		name: "Buildkite", signs: []string{"BUILDKITE=true"},
		target: "BUILDKITE_PULL_REQUEST_BASE_BRANCH", number: "BUILDKITE_PULL_REQUEST", head: "BUILDKITE_COMMIT", server: "BUILDKITE_REPO", run: "BUILDKITE_BUILD_URL",
		more: []string{"BUILDKITE_PIPELINE_PROVIDER", "BUILDKITE_PULL_REQUEST_REPO"}, complete: buildkite,
	},
	{
		// CircleCI provides no variable with the target branch.
		name: "CircleCI", signs: []string{"CIRCLECI=true"}, head: "CIRCLE_SHA1", server: "CIRCLE_PULL_REQUEST", run: "CIRCLE_BUILD_URL",
		more: []string{"CIRCLE_PR_NUMBER"}, complete: func(env func(string) string, p *PullRequest) {
			p.fromPage(env("CIRCLE_PULL_REQUEST"))
			p.Fork = env("CIRCLE_PR_NUMBER") != ""
		},
	},
}

// forges maps the names that Woodpecker, Azure Pipelines and Buildkite use to kinds of Git hosts.
var forges = map[string]string{
	"github": GitHub, "gitlab": GitLab, "gitea": Gitea, "forgejo": Gitea, "bitbucket": BitbucketCloud, "bitbucket-dc": BitbucketServer, "bitbucket_dc": BitbucketServer,
	"GitHub": GitHub, "GitHubEnterprise": GitHub, "Bitbucket": BitbucketCloud, "github_enterprise": GitHub, "gitlab_ee": GitLab, "bitbucket_server": BitbucketServer,
}

// actionsVariables lists the variables that actions and readEvent read.
var actionsVariables = []string{"GITHUB_BASE_REF", "GITHUB_REF", "GITHUB_EVENT_PATH", "GITHUB_RUN_ID"}

// pullReference matches the reference that a pull request workflow has checked out.
var pullReference = lazy.Regexp(`^refs/pull/([0-9]+)/(merge|head)$`)

// actions completes the pull request of a GitHub, Gitea or Forgejo workflow.
func actions(env func(string) string, p *PullRequest) {
	p.Target = strings.TrimPrefix(env("GITHUB_BASE_REF"), "refs/heads/")
	if found := pullReference().FindStringSubmatch(env("GITHUB_REF")); found != nil {
		p.Number, p.Merge = number(found[1]), found[2] == "merge"
	}
	if run := env("GITHUB_RUN_ID"); run != "" {
		p.Run = p.Server + "/" + p.Repository + "/actions/runs/" + run
	}
	readEvent(env, p)
}

func gitlab(env func(string) string, p *PullRequest) {
	if p.Head == "" { // set only in merged results pipelines
		p.Head = p.Commit
	}
	target, source := env("CI_MERGE_REQUEST_PROJECT_ID"), env("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")
	p.Fork = target != "" && source != "" && target != source
}

func azure(env func(string) string, p *PullRequest) {
	p.Merge = pullReference().MatchString(env("BUILD_SOURCEBRANCH"))
	p.Host = forges[env("BUILD_REPOSITORY_PROVIDER")]
	p.Server, _ = SplitClone(env("BUILD_REPOSITORY_URI"))
	p.Fork = strings.EqualFold(env("SYSTEM_PULLREQUEST_ISFORK"), "true")
}

func buildkite(env func(string) string, p *PullRequest) {
	p.Host = forges[env("BUILDKITE_PIPELINE_PROVIDER")]
	p.Server, p.Repository = SplitClone(env("BUILDKITE_REPO"))
	if from := env("BUILDKITE_PULL_REQUEST_REPO"); from != "" {
		server, repository := SplitClone(from)
		p.Fork = !strings.EqualFold(server+"/"+repository, p.Server+"/"+p.Repository)
	}
}
