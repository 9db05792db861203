// Package cloud gets credentials from the identity of the environment for the registries of AWS, Azure
// and Google Cloud and for the Git repositories of AWS and Azure, and from a GitHub App for those of
// GitHub. It does so in the helper process: the libraries of the providers would slow down the start
// of every command.
package cloud

import (
	"context"
	"fmt"
	"sync"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job that gets credentials, and the argument of its process.
const Job = "login"

// The providers, as in the spec of sources.
const (
	AWS   = "aws"
	Azure = "azure"
	GCP   = "gcp"
)

// Known reports whether provider has registries. The provider generic has no identity.
func Known(provider string) bool { return provider == AWS || provider == Azure || provider == GCP }

// titles has the names of providers in messages.
var titles = map[string]string{AWS: "AWS", Azure: "Azure", GCP: "Google Cloud", GitHub: "GitHub"}

// Request is the input of Job.
type Request struct {
	Provider string `json:"provider"`
	// Registry is the host of the registry, in errors also that of the Git server.
	Registry string `json:"registry"`
}

// Credentials authenticate at a registry.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// Result is the output of Job: credentials, or the reason why there are none.
type Result struct {
	Credentials
	Failure *Error `json:"failure,omitempty"`
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
	// Exchange is the step that exchanges them for credentials of the registry.
	Exchange Step = "exchange"
)

// Error is returned if there are no credentials for a registry.
type Error struct {
	Request
	Step   Step   `json:"step"`
	Detail string `json:"detail,omitempty"`
}

func (e *Error) Error() string {
	title := titles[e.Provider]
	switch e.Step {
	case CheckRegistry:
		return fmt.Sprintf("%s is not a registry of %s: no credentials were requested", e.Registry, title)
	case CheckGit:
		return fmt.Sprintf("%s is not a Git server of %s: no credentials were requested", e.Registry, title)
	case CheckBucket:
		return fmt.Sprintf("%s is not a server with buckets of %s: no credentials were requested", e.Registry, title)
	case Exchange:
		return fmt.Sprintf("%s issued no credentials for %s: %s", title, e.Registry, e.Detail)
	default:
		return fmt.Sprintf("no credentials of %s for %s: %s", title, e.Registry, e.Detail)
	}
}

// Client gets credentials, once for each registry.
type Client struct {
	// Process runs Job with the environment of the user.
	Process *helper.Process
	// Mask receives the credentials, to mask them in output.
	Mask func(username, password string)

	mu    sync.Mutex
	known map[Request]Credentials
}

// Close ends the process.
func (c *Client) Close() error { return c.Process.Close() }

// Credentials returns credentials of a provider for a registry. They are valid for some hours or
// less, and are not stored.
func (c *Client) Credentials(ctx context.Context, provider, registry string) (Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Request{provider, registry}
	if known, ok := c.known[r]; ok {
		return known, nil
	}
	var result Result
	title := fmt.Sprintf("getting credentials of %s for %s", titles[provider], registry)
	if err := c.Process.Do(ctx, helper.Call{Job: Job, Title: title, Input: r}, &result); err != nil {
		return Credentials{}, fmt.Errorf("%s: %w", title, err)
	}
	if result.Failure != nil {
		return Credentials{}, result.Failure
	}
	c.Mask(result.Username, result.Password)
	if c.known == nil {
		c.known = map[Request]Credentials{}
	}
	c.known[r] = result.Credentials
	return result.Credentials, nil
}
