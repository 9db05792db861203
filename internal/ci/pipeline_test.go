package ci_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/ci"
)

// environment is the environment of a CI system.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// and returns the environment with other variables.
func (e environment) and(pairs ...string) environment {
	all := environment{}
	for name, value := range e {
		all[name] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

var (
	github = environment{
		"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/42/merge", "GITHUB_SHA": "c1", "GITHUB_RUN_ID": "7",
		"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/fleet",
	}
	gitlab = environment{
		"CI": "true", "GITLAB_CI": "true", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_IID": "42", "CI_COMMIT_SHA": "c1",
		"CI_SERVER_URL": "https://gitlab.example.com/git", "CI_MERGE_REQUEST_PROJECT_PATH": "acme/platform/fleet", "CI_JOB_URL": "https://gitlab.example.com/j/1",
		"CI_MERGE_REQUEST_PROJECT_ID": "5", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "5",
	}
	azure = environment{
		"TF_BUILD": "True", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main", "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER": "42", "SYSTEM_PULLREQUEST_SOURCECOMMITID": "h1",
		"BUILD_SOURCEBRANCH": "refs/pull/42/merge", "BUILD_SOURCEVERSION": "c1", "BUILD_REPOSITORY_PROVIDER": "GitHub", "BUILD_REPOSITORY_NAME": "acme/fleet",
		"BUILD_REPOSITORY_URI": "https://github.com/acme/fleet", "SYSTEM_PULLREQUEST_ISFORK": "False",
	}
	bitbucket = environment{
		"CI": "true", "BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_PR_DESTINATION_BRANCH": "main", "BITBUCKET_PR_ID": "42", "BITBUCKET_COMMIT": "h1", "BITBUCKET_REPO_FULL_NAME": "acme/fleet",
	}
	jenkins = environment{
		"JENKINS_URL": "https://ci.example.com/", "BUILD_URL": "https://ci.example.com/job/1/", "CHANGE_ID": "42", "CHANGE_TARGET": "main", "CHANGE_URL": "https://github.com/acme/fleet/pull/42",
	}
	woodpecker = environment{
		"CI": "woodpecker", "CI_COMMIT_TARGET_BRANCH": "main", "CI_COMMIT_PULL_REQUEST": "42", "CI_COMMIT_SHA": "h1", "CI_FORGE_TYPE": "forgejo",
		"CI_FORGE_URL": "https://git.example.com", "CI_REPO": "acme/fleet", "CI_PIPELINE_URL": "https://ci.example.com/1",
	}
	drone = environment{
		"CI": "true", "DRONE": "true", "DRONE_PULL_REQUEST": "42", "DRONE_TARGET_BRANCH": "main", "DRONE_COMMIT_SHA": "h1",
		"DRONE_COMMIT_LINK": "https://git.example.com/acme/fleet/pulls/42", "DRONE_BUILD_LINK": "https://ci.example.com/1",
	}
	buildkite = environment{
		"CI": "true", "BUILDKITE": "true", "BUILDKITE_PULL_REQUEST": "42", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main", "BUILDKITE_COMMIT": "h1",
		"BUILDKITE_REPO": "git@github.com:acme/fleet.git", "BUILDKITE_PULL_REQUEST_REPO": "https://github.com/acme/fleet.git", "BUILDKITE_PIPELINE_PROVIDER": "github",
		"BUILDKITE_BUILD_URL": "https://buildkite.com/1",
	}
	circle = environment{
		"CI": "true", "CIRCLECI": "true", "CIRCLE_PULL_REQUEST": "https://github.com/acme/fleet/pull/42", "CIRCLE_SHA1": "h1", "CIRCLE_BUILD_URL": "https://circleci.com/1",
	}
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	event := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own := event("own", `{"pull_request": {"number": 42, "head": {"sha": "h1", "repo": {"full_name": "Acme/fleet"}}}}`)
	fork := event("fork", `{"pull_request": {"number": 42, "head": {"sha": "h1", "repo": {"full_name": "eve/fleet"}}}}`)
	deleted := event("deleted", `{"pull_request": {"number": 42, "head": {"sha": "h1", "repo": null}}}`)
	push := event("push", `{"ref": "refs/heads/main", "head_commit": {"id": "c1"}}`)
	invalid := event("invalid", `{"pull_request": {"number": "42"`)
	for name, test := range map[string]struct {
		env  environment
		want ci.PullRequest
	}{
		"none":                  {environment{"CI": "true", "GITHUB_TOKEN": "x", "BUILD_URL": "x"}, ci.PullRequest{}},
		"GitHub":                {github.and("GITHUB_EVENT_PATH", own), hub("GitHub Actions", ci.GitHub, "h1", false)},
		"GitHub, fork":          {github.and("GITHUB_EVENT_PATH", fork), hub("GitHub Actions", ci.GitHub, "h1", true)},
		"GitHub, deleted fork":  {github.and("GITHUB_EVENT_PATH", deleted), hub("GitHub Actions", ci.GitHub, "h1", true)},
		"GitHub, no event":      {github, hub("GitHub Actions", ci.GitHub, "", false)},
		"GitHub, invalid event": {github.and("GITHUB_EVENT_PATH", invalid), hub("GitHub Actions", ci.GitHub, "", false)},
		"GitHub, pull_request_target": {github.and("GITHUB_EVENT_PATH", own, "GITHUB_REF", "refs/heads/main"), ci.PullRequest{
			System: "GitHub Actions", Number: 42, Target: "main", Commit: "c1", Head: "h1", Host: ci.GitHub, Server: "https://github.com", Origin: "GITHUB_SERVER_URL",
			Repository: "acme/fleet", Run: "https://github.com/acme/fleet/actions/runs/7",
		}},
		"GitHub, push": {github.and("GITHUB_EVENT_PATH", push, "GITHUB_REF", "refs/heads/main", "GITHUB_BASE_REF", ""), ci.PullRequest{
			System: "GitHub Actions", Commit: "c1", Host: ci.GitHub, Server: "https://github.com", Origin: "GITHUB_SERVER_URL", Repository: "acme/fleet",
			Run: "https://github.com/acme/fleet/actions/runs/7",
		}},
		"Gitea":   {github.and("GITEA_ACTIONS", "true"), hub("Gitea Actions", ci.Gitea, "", false)},
		"Forgejo": {github.and("GITEA_ACTIONS", "true", "FORGEJO_ACTIONS", "true", "GITHUB_EVENT_PATH", fork), hub("Forgejo Actions", ci.Gitea, "h1", true)},
		"GitLab":  {gitlab, lab("c1", "", false)},
		"GitLab, merged results": {
			gitlab.and("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "h1", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "b1"), lab("h1", "b1", false),
		},
		"GitLab, fork": {gitlab.and("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "6"), lab("c1", "", true)},
		"Azure": {azure, ci.PullRequest{
			System: "Azure Pipelines", Number: 42, Target: "main", Commit: "c1", Merge: true, Head: "h1", Host: ci.GitHub, Server: "https://github.com",
			Origin: "BUILD_REPOSITORY_URI", Repository: "acme/fleet",
		}},
		"Azure Repos": {azure.and("BUILD_REPOSITORY_PROVIDER", "TfsGit", "BUILD_REPOSITORY_URI", "https://dev.azure.com/acme/p/_git/fleet", "SYSTEM_PULLREQUEST_ISFORK", "True"), ci.PullRequest{
			System: "Azure Pipelines", Number: 42, Target: "main", Commit: "c1", Merge: true, Head: "h1", Fork: true, Server: "https://dev.azure.com",
			Origin: "BUILD_REPOSITORY_URI", Repository: "acme/fleet",
		}},
		"Bitbucket": {bitbucket, ci.PullRequest{
			System: "Bitbucket Pipelines", Number: 42, Target: "main", Head: "h1", Host: ci.BitbucketCloud, Server: "https://bitbucket.org", Repository: "acme/fleet",
		}},
		"Jenkins": {jenkins, change(ci.GitHub, "https://github.com", "acme/fleet", false)},
		"Jenkins, fork": {
			jenkins.and("CHANGE_FORK", "eve"), change(ci.GitHub, "https://github.com", "acme/fleet", true),
		},
		"Jenkins, GitLab": {
			jenkins.and("CHANGE_URL", "https://gitlab.com/acme/platform/fleet/-/merge_requests/42"), change(ci.GitLab, "https://gitlab.com", "acme/platform/fleet", false),
		},
		"Jenkins, Gitea": {
			jenkins.and("CHANGE_URL", "http://git.example.com:3000/below/acme/fleet/pulls/42"), change(ci.Gitea, "http://git.example.com:3000/below", "acme/fleet", false),
		},
		"Jenkins, Bitbucket Server": {
			jenkins.and("CHANGE_URL", "https://b.example.com/scm/projects/PLAT/repos/fleet/pull-requests/42/overview"),
			change(ci.BitbucketServer, "https://b.example.com/scm", "PLAT/fleet", false),
		},
		"Jenkins, Bitbucket user": {
			jenkins.and("CHANGE_URL", "https://b.example.com/users/ada/repos/fleet/pull-requests/42"), change(ci.BitbucketServer, "https://b.example.com", "~ada/fleet", false),
		},
		"Jenkins, Bitbucket Cloud": {
			jenkins.and("CHANGE_URL", "https://bitbucket.org/acme/fleet/pull-requests/42"), change(ci.BitbucketCloud, "https://bitbucket.org", "acme/fleet", false),
		},
		"Jenkins, Gerrit": {jenkins.and("CHANGE_URL", "https://review.example.com/c/fleet/+/42"), ci.PullRequest{
			System: "Jenkins", Number: 42, Target: "main", Origin: "CHANGE_URL", Run: "https://ci.example.com/job/1/",
		}},
		"Woodpecker": {woodpecker, ci.PullRequest{
			System: "Woodpecker", Number: 42, Target: "main", Head: "h1", Host: ci.Gitea, Server: "https://git.example.com", Origin: "CI_FORGE_URL", Repository: "acme/fleet",
			Run: "https://ci.example.com/1",
		}},
		"Drone": {drone, ci.PullRequest{
			System: "Drone", Number: 42, Target: "main", Head: "h1", Host: ci.Gitea, Server: "https://git.example.com", Origin: "DRONE_COMMIT_LINK", Repository: "acme/fleet",
			Run: "https://ci.example.com/1",
		}},
		"Drone, push": {drone.and("DRONE_PULL_REQUEST", "", "DRONE_COMMIT_LINK", "https://git.example.com/acme/fleet/compare/a...b"), ci.PullRequest{
			System: "Drone", Head: "h1", Origin: "DRONE_COMMIT_LINK", Run: "https://ci.example.com/1",
		}},
		"Buildkite":       {buildkite, kite(42, "main", false)},
		"Buildkite, fork": {buildkite.and("BUILDKITE_PULL_REQUEST_REPO", "https://github.com/eve/fleet.git"), kite(42, "main", true)},
		"Buildkite, push": {buildkite.and("BUILDKITE_PULL_REQUEST", "false", "BUILDKITE_PULL_REQUEST_BASE_BRANCH", "", "BUILDKITE_PULL_REQUEST_REPO", ""), kite(0, "", false)},
		"CircleCI":        {circle, ring(42, false)},
		"CircleCI, fork":  {circle.and("CIRCLE_PR_NUMBER", "42"), ring(42, true)},
		"CircleCI, push":  {circle.and("CIRCLE_PULL_REQUEST", ""), ci.PullRequest{System: "CircleCI", Head: "h1", Origin: "CIRCLE_PULL_REQUEST", Run: "https://circleci.com/1"}},
	} {
		if diff := cmp.Diff(test.want, ci.Read(test.env.get)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func hub(system, host, head string, fork bool) ci.PullRequest {
	return ci.PullRequest{
		System: system, Number: 42, Target: "main", Commit: "c1", Merge: true, Head: head, Fork: fork, Host: host, Server: "https://github.com", Origin: "GITHUB_SERVER_URL",
		Repository: "acme/fleet", Run: "https://github.com/acme/fleet/actions/runs/7",
	}
}

func lab(head, into string, fork bool) ci.PullRequest {
	return ci.PullRequest{
		System: "GitLab CI", Number: 42, Target: "main", Commit: "c1", Head: head, Into: into, Fork: fork, Host: ci.GitLab, Server: "https://gitlab.example.com/git", Origin: "CI_SERVER_URL",
		Repository: "acme/platform/fleet", Run: "https://gitlab.example.com/j/1",
	}
}

func change(host, server, repository string, fork bool) ci.PullRequest {
	return ci.PullRequest{
		System: "Jenkins", Number: 42, Target: "main", Fork: fork, Host: host, Server: server, Origin: "CHANGE_URL", Repository: repository, Run: "https://ci.example.com/job/1/",
	}
}

func kite(number int, target string, fork bool) ci.PullRequest {
	return ci.PullRequest{
		System: "Buildkite", Number: number, Target: target, Head: "h1", Fork: fork, Host: ci.GitHub, Server: "https://github.com", Origin: "BUILDKITE_REPO", Repository: "acme/fleet",
		Run: "https://buildkite.com/1",
	}
}

func ring(number int, fork bool) ci.PullRequest {
	return ci.PullRequest{
		System: "CircleCI", Number: number, Head: "h1", Fork: fork, Host: ci.GitHub, Server: "https://github.com", Origin: "CIRCLE_PULL_REQUEST", Repository: "acme/fleet",
		Run: "https://circleci.com/1",
	}
}

// FuzzRead requires that no values of variables make an address of a host without a
// scheme and a name.
func FuzzRead(f *testing.F) {
	f.Add("https://github.com/acme/fleet/pull/42", "git@github.com:acme/fleet.git", "42")
	f.Add("https://[::1", "ssh://", "-1")
	f.Fuzz(func(t *testing.T, page, clone, number string) {
		for _, env := range []environment{jenkins.and("CHANGE_URL", page, "CHANGE_ID", number), drone.and("DRONE_COMMIT_LINK", page), buildkite.and("BUILDKITE_REPO", clone, "BUILDKITE_PULL_REQUEST", number)} {
			p := ci.Read(env.get)
			if p.Number < 0 || p.Known() && !hasServer(p.Server) {
				t.Errorf("%+v", p)
			}
		}
	})
}

func hasServer(server string) bool {
	for _, scheme := range []string{"https://", "http://"} {
		if len(server) > len(scheme) && server[:len(scheme)] == scheme {
			return true
		}
	}
	return false
}
