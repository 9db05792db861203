package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
)

// githubKeys is the deploy keys of a repository on GitHub.
type githubKeys struct{ *githubAPI }

// checkPolicy returns an error if the organization is known not to allow deploy
// keys. The library does not have the field.
func (g githubKeys) checkPolicy(ctx context.Context) error {
	var policy struct {
		Enabled *bool `json:"deploy_keys_enabled_for_repositories"`
	}
	if err := g.get(ctx, "orgs/"+g.Owner, &policy); err != nil {
		return g.problem(ctx, "reading the organization "+g.Owner, err)
	}
	if no(policy.Enabled) {
		return g.forbidden()
	}
	return nil
}

// forbidden returns the error for an organization that does not allow deploy keys.
func (g githubKeys) forbidden() error {
	return hint.Errorf("use --token-auth, or have an owner allow deploy keys at "+g.HTTPURL("organizations/"+g.Owner+"/settings/member_privileges"),
		"deploy keys are not allowed for %s by a policy of its owner", g.Hosted)
}

func (g githubKeys) list(ctx context.Context, title string) ([]storedKey, error) {
	var all []storedKey
	for page := 1; page != 0; {
		some, response, err := g.client.Repositories.ListKeys(ctx, g.Owner, g.Name, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.problem(ctx, "listing the deploy keys of "+g.String(), err)
		}
		for _, k := range some {
			all = append(all, storedKey{
				id: k.GetID(), title: k.GetTitle(), public: k.GetKey(), titled: k.GetTitle() == title, permitted: k.GetReadOnly() != g.ReadWriteKey,
			})
		}
		page = response.NextPage
	}
	return all, nil
}

func (g githubKeys) add(ctx context.Context, key DeployKey) error {
	readOnly := !g.ReadWriteKey
	_, _, err := g.client.Repositories.CreateKey(ctx, g.Owner, g.Name, &github.Key{Title: &key.Title, Key: &key.Public, ReadOnly: &readOnly})
	var rejected *github.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected) && mentions(rejected, "already in use"):
		return hint.Errorf("use another key: on GitHub a key belongs to one repository or user", "the key is in use elsewhere on %s and cannot be a deploy key of %s", g.Hostname, g.Hosted)
	case errors.As(err, &rejected) && mentions(rejected, "deploy keys are disabled"):
		return g.forbidden()
	default:
		return g.problem(ctx, fmt.Sprintf("adding the deploy key %q to %s", key.Title, g.Hosted), err)
	}
}

func (g githubKeys) remove(ctx context.Context, key storedKey) error {
	_, err := g.client.Repositories.DeleteKey(ctx, g.Owner, g.Name, key.id)
	if status(err) == http.StatusNotFound {
		return nil // another run has removed it
	}
	return g.problem(ctx, fmt.Sprintf("removing the old deploy key %q of %s", key.title, g.Hosted), err)
}
