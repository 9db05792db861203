// Package provider lists the Git hosts with an API, each of which has its own package.
package provider

import (
	"net/http"

	"github.com/fluxkit/flux/internal/ci"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/bitbucket"
	"github.com/fluxkit/flux/internal/githost/gitea"
	"github.com/fluxkit/flux/internal/githost/github"
	"github.com/fluxkit/flux/internal/githost/gitlab"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// Host is a kind of Git host that bootstrap supports.
type Host struct {
	// Permissions lists the permissions that teams can have.
	Permissions []string
	open        func(githost.Hosted, *http.Client) (githost.Host, error)
}

// Hosts returns the kinds of Git hosts that bootstrap supports, keyed by their names in package ci.
func Hosts() map[string]Host {
	return map[string]Host{
		ci.GitHub:          {github.Permissions(), host(github.New)},
		ci.GitLab:          {gitlab.Permissions(), gitlab.New},
		ci.Gitea:           {gitea.Permissions(), host(gitea.New)},
		ci.BitbucketServer: {bitbucket.Permissions(), host(bitbucket.New)},
	}
}

// host adapts a function that returns no error.
func host(open func(githost.Hosted, *http.Client) *rest.Host) func(githost.Hosted, *http.Client) (githost.Host, error) {
	return func(h githost.Hosted, client *http.Client) (githost.Host, error) { return open(h, client), nil }
}

// Open returns a repository. The client comes from a rest.Caller.
func (h Host) Open(hosted githost.Hosted, client *http.Client) (githost.Host, error) {
	return h.open(hosted, client)
}

// OpenPull returns the pull request with a number on a host of one of the kinds in [githost.PullRequestHosts].
func OpenPull(kind string, h githost.Hosted, number int, client *http.Client) githost.PullRequest {
	host := githost.PullRequestHosts()[kind]
	api := &rest.API{
		Hosted: h, Name: host.Name, Variable: h.TokenOrigin, Denied: "the token in " + h.TokenOrigin + " needs " + host.Permissions,
		Rejected: "check the pull request, its repository and the token in " + h.TokenOrigin,
	}
	return map[string]func(githost.Hosted, int, *http.Client, *rest.API) *rest.Pull{
		ci.GitHub: github.OpenPull, ci.GitLab: gitlab.OpenPull, ci.Gitea: gitea.OpenPull,
		ci.BitbucketServer: bitbucket.OpenPull, ci.BitbucketCloud: bitbucket.OpenCloudPull,
	}[kind](h, number, client, api)
}
