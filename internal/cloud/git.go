package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/helper"
)

// GitHub is the provider of GitRepositories that authenticate as a GitHub App.
const GitHub = "github"

// GitJob is the job that gets credentials for a Git repository, in the same helper process as Job.
const GitJob helper.Call[GitRequest, GitCredentials] = "git-login"

// KnownGit reports whether provider issues credentials for Git repositories.
func KnownGit(provider string) bool {
	return provider == AWS || provider == Azure || provider == GitHub
}

// GitRequest is the input of GitJob.
type GitRequest struct {
	Provider string `json:"provider"`
	// URL is the address of the repository.
	URL string `json:"url"`
	// App is the Secret data of a GitHub App. The other providers use the identity of the environment.
	App map[string][]byte `json:"app,omitempty"`
	// Proxy is the URL of the proxy for requests of a GitHub App, "" to use the proxy of the environment.
	Proxy string `json:"proxy,omitempty"`
}

// GitCredentials authenticate at a Git server: a login, or a bearer token.
type GitCredentials struct {
	Credentials
	Token string `json:"token,omitempty"`
}

// GitCredentials returns credentials of a provider for a Git repository. They are valid for a
// few hours at most and are not stored.
func (c *Client) GitCredentials(ctx context.Context, r GitRequest) (GitCredentials, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return GitCredentials{}, errors.New("invalid URL") // the parse error may contain credentials
	}
	title := fmt.Sprintf("getting %s credentials for %s", titles[r.Provider], u.Host)
	got, err := GitJob.Do(ctx, c.process, title, r)
	if err != nil {
		return GitCredentials{}, failed(Request{r.Provider, u.Host}, title, err)
	}
	c.mask(got.Username, got.Password)
	c.mask("", got.Token)
	_, session, _ := strings.Cut(got.Username, "%") // CodeCommit user names contain the session token
	c.mask("", session)
	return got, nil
}
