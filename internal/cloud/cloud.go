// Package cloud gets credentials from the identity of the environment for registries of AWS, Azure and Google Cloud and
// for Git repositories of AWS and Azure, from a CI system for its own registry, and from a GitHub App for GitHub
// repositories. It uses the helper process, because the provider libraries would slow down the start of every command.
package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job that gets credentials for a registry, and the argument of its process.
const Job helper.Call[Input, Credentials] = "login"

// Input is the input of Job.
type Input struct {
	Request
	// Federated holds the ServiceAccount annotations that select the identity for a CI system's OIDC token, nil to use
	// the identity of the environment. The job requests an OIDC token for the provider's audience.
	Federated map[string]string `json:"federated,omitempty"`
}

// The providers, as in the spec of sources.
const (
	AWS   = "aws"
	Azure = "azure"
	GCP   = "gcp"
)

// Known reports whether credentials for registries of the provider can be requested, which excludes the provider
// generic.
func Known(provider string) bool { return provider == AWS || provider == Azure || provider == GCP }

// titles maps providers to their names in messages.
var titles = map[string]string{AWS: "AWS", Azure: "Azure", GCP: "Google Cloud", GitHub: "GitHub", GitLab: "GitLab"}

// Request specifies the registry or server for which credentials are requested.
type Request struct {
	Provider string `json:"provider"`
	// Registry is the host of the registry or, in errors, of the Git server.
	Registry string `json:"registry"`
}

// Credentials authenticate at a registry.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// Step is the step of a login that failed.
type Step string

const (
	// CheckRegistry is the step that checks whether the provider runs the registry, before any
	// request is sent.
	CheckRegistry Step = "registry"
	// CheckGit is the step that checks whether the provider runs the Git server, before any request is
	// sent.
	CheckGit Step = "git"
	// CheckBucket is the step that checks whether the provider runs the server of a bucket, before any
	// request is sent.
	CheckBucket Step = "bucket"
	// Identify is the step that gets credentials of the provider from the environment.
	Identify Step = "identity"
	// Exchange is the step that exchanges these credentials for registry credentials.
	Exchange Step = "exchange"
)

// Error is returned if credentials for a registry or server cannot be obtained.
type Error struct {
	Request
	Step   Step
	Detail string
}

// failed returns the error of a job.
func failed(r Request, title string, err error) error {
	var failure *helper.Error
	if errors.As(err, &failure) && failure.Step != "" {
		return &Error{r, Step(failure.Step), failure.Text}
	}
	return fmt.Errorf("%s: %w", title, err)
}

func (e *Error) Error() string {
	title := titles[e.Provider]
	switch e.Step {
	case CheckRegistry:
		return fmt.Sprintf("%s is not a registry of %s: no credentials were requested", e.Registry, title)
	case CheckGit:
		return fmt.Sprintf("%s is not a Git server of %s: no credentials were requested", e.Registry, title)
	case CheckBucket:
		return fmt.Sprintf("%s is not a bucket endpoint of %s: no credentials were requested", e.Registry, title)
	case Exchange:
		return fmt.Sprintf("%s issued no credentials for %s: %s", title, e.Registry, e.Detail)
	default:
		return fmt.Sprintf("no %s credentials for %s: %s", title, e.Registry, e.Detail)
	}
}

// Client gets credentials, once for each registry.
type Client struct {
	process *helper.Process
	// mask receives the credentials, to mask them in output.
	mask func(username, password string)
	env  func(string) string

	mu    sync.Mutex
	known map[Request]Credentials
}

// New returns the client of a pool. Its helper process inherits the environment of flux, from which
// the provider libraries read the identity. mask receives the credentials.
func New(pool *helper.Pool, mask func(username, password string)) *Client {
	return helper.Shared(pool, string(Job), func() *Client {
		environment := func(context.Context) ([]string, error) { return pool.Environ(), nil }
		return &Client{process: pool.Process("", environment, string(Job)), mask: mask, env: pool.Env, known: map[Request]Credentials{}} // the AWS library logs to stderr
	})
}

// Close stops the helper process.
func (c *Client) Close() error { return c.process.Close() }

// Login returns credentials of a provider for a registry. They are valid for a few hours at most and are not stored.
func (c *Client) Login(ctx context.Context, provider, registry string) (username, password string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Request{provider, registry}
	got, known := c.known[r]
	if !known {
		title := fmt.Sprintf("getting %s credentials for %s", titles[provider], registry)
		if provider == GitHub || provider == GitLab {
			got, err = jobLogin(r, c.env)
		} else if got, err = Job.DoWithQueries(ctx, c.process, title, Input{r, federated(provider, c.env)}, func(query json.RawMessage) (any, error) {
			return c.jobToken(ctx, query)
		}); err != nil {
			err = failed(r, title, err)
		}
		if err != nil {
			return "", "", err
		}
		c.mask(got.Username, got.Password)
		c.known[r] = got
	}
	return got.Username, got.Password, nil
}
