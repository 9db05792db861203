package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/helper"
)

// GitHub is the provider of GitRepositories that a GitHub App reads.
const GitHub = "github"

// GitJob is the job that gets credentials for a Git repository, in the process of Job.
const GitJob = "git-login"

// KnownGit reports whether provider issues credentials for Git repositories.
func KnownGit(provider string) bool {
	return provider == AWS || provider == Azure || provider == GitHub
}

// GitRequest is the input of GitJob.
type GitRequest struct {
	Provider string `json:"provider"`
	// URL is the address of the repository.
	URL string `json:"url"`
	// App is the data of the Secret of a GitHub App. The other providers use the identity of the
	// environment.
	App map[string][]byte `json:"app,omitempty"`
	// Proxy is the URL of the proxy for the requests of a GitHub App, "" for that of the environment.
	Proxy string `json:"proxy,omitempty"`
}

// GitCredentials authenticate at a Git server: a login, or a bearer token.
type GitCredentials struct {
	Credentials
	Token string `json:"token,omitempty"`
}

// GitResult is the output of GitJob: credentials, or the reason why there are none.
type GitResult struct {
	GitCredentials
	Failure *Error `json:"failure,omitempty"`
}

// GitCredentials returns credentials of a provider for a Git repository. They are valid for some
// hours or less, and are not stored.
func (c *Client) GitCredentials(ctx context.Context, r GitRequest) (GitCredentials, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return GitCredentials{}, errors.New("invalid URL") // the parse error may contain credentials
	}
	var result GitResult
	title := fmt.Sprintf("getting credentials of %s for %s", titles[r.Provider], u.Host)
	if err := c.Process.Do(ctx, helper.Call{Job: GitJob, Title: title, Input: r}, &result); err != nil {
		return GitCredentials{}, fmt.Errorf("%s: %w", title, err)
	}
	if result.Failure != nil {
		return GitCredentials{}, result.Failure
	}
	c.Mask(result.Username, result.Password)
	c.Mask("", result.Token)
	_, session, _ := strings.Cut(result.Username, "%") // AWS puts the session token there
	c.Mask("", session)
	return result.GitCredentials, nil
}
