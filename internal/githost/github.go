package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
)

// GitHub is a repository on github.com or on a GitHub Enterprise server.
type GitHub struct {
	*githubAPI

	// Set by Survey.
	// remote is the repository, nil if it does not exist.
	remote *github.Repository
	// grants are the teams to grant access.
	grants []Team
}

// NewGitHub returns a repository on GitHub. See [Caller.Client] for the client.
func NewGitHub(h Hosted, client *http.Client) *GitHub {
	base := githubURL(h)
	api := github.NewClient(client).WithAuthToken(h.Token)
	api.BaseURL = &base
	return &GitHub{githubAPI: &githubAPI{Hosted: h, client: api}}
}

// Survey implements Host.
func (g *GitHub) Survey(ctx context.Context, want Want) (Survey, error) {
	owner, err := g.read(ctx)
	if err != nil {
		return Survey{}, err
	}
	if err := g.checkOwner(owner); err != nil {
		return Survey{}, err
	}
	if err := g.scopesSuffice(); err != nil {
		return Survey{}, err
	}
	changes, err := g.changes(ctx, want)
	if err != nil {
		return Survey{}, err
	}
	if want.KeyTitle != "" {
		if err := g.checkKeys(ctx); err != nil {
			return Survey{}, err
		}
	}
	survey := Survey{
		Repository: g.repository(), Exists: g.remote != nil, Changes: changes, Account: g.account, Expires: g.token.expires,
	}
	if survey.Exists {
		branch := githubBranch{g.githubAPI, want.Branch, g.remote.GetPermissions()["admin"]}
		survey.Protected, err = branch.protected(ctx)
	}
	return survey, err
}

// repository returns the URLs and credentials of the repository.
func (g *GitHub) repository() Repository {
	name := g.String()
	access := Access{URL: g.HTTPURL(name + ".git"), Username: "git", Password: g.Token, CABundle: g.CABundle}
	r := Repository{Access: access, SyncURL: g.SSHURL(name), DefaultBranch: g.Branch}
	if g.TokenAuth {
		r.SyncURL = access.URL
	}
	if g.remote != nil {
		r.DefaultBranch = g.remote.GetDefaultBranch()
	}
	return r
}

// Ensure implements Host. It creates the repository without a commit: the first
// push creates the branch, which becomes the default one.
func (g *GitHub) Ensure(ctx context.Context) (Repository, error) {
	if g.remote == nil {
		if err := g.create(ctx); err != nil {
			return Repository{}, err
		}
	}
	for _, edit := range g.drift() {
		changed, _, err := g.client.Repositories.Edit(ctx, g.Owner, g.Name, edit.fields)
		if err != nil {
			return Repository{}, g.problem(ctx, "trying to "+edit.what, err)
		}
		g.remote = changed
	}
	for len(g.grants) > 0 {
		if err := (githubTeams{g.githubAPI, true}).add(ctx, g.grants[0]); err != nil {
			return Repository{}, err
		}
		g.grants = g.grants[1:]
	}
	return g.repository(), nil
}

func (g *GitHub) create(ctx context.Context) error {
	private, org := g.Visibility != "public", g.Owner
	wanted := &github.Repository{Name: &g.Name, Private: &private}
	if g.Visibility == "internal" {
		wanted.Visibility = &g.Visibility
	}
	if g.Description != "" {
		wanted.Description = &g.Description
	}
	if g.Personal {
		org = ""
	}
	created, _, err := g.client.Repositories.Create(ctx, org, wanted)
	if err == nil {
		g.remote = created
		return nil
	}
	var rejected *github.ErrorResponse
	if !errors.As(err, &rejected) || !mentions(rejected, "already exists") {
		return g.problem(ctx, "creating the repository "+g.String(), err)
	}
	// Another client created it, or the token cannot read the existing one.
	if err := g.readRepository(ctx); err != nil || g.remote != nil {
		return err
	}
	return hint.Errorf("grant the token access to it, or set another --repository", "there is a repository %s already, which the token cannot read", g.Hosted)
}

// DeployKey implements Host.
func (g *GitHub) DeployKey(ctx context.Context, key DeployKey) error {
	return grant(ctx, githubKeys{g.githubAPI}, key)
}

// RequestChange implements Requester.
func (g *GitHub) RequestChange(ctx context.Context, change Change) (Request, error) {
	return openRequest(func() (Request, error) {
		found, _, err := g.client.PullRequests.List(ctx, g.Owner, g.Name, &github.PullRequestListOptions{
			State: "open", Head: g.Owner + ":" + change.Head, Base: change.Base,
		})
		if err != nil || len(found) == 0 {
			return Request{}, g.problem(ctx, "listing the pull requests of "+g.String(), err)
		}
		return Request{URL: found[0].GetHTMLURL(), Number: found[0].GetNumber()}, nil
	}, func() (Request, error) {
		opened, _, err := g.client.PullRequests.Create(ctx, g.Owner, g.Name, &github.NewPullRequest{
			Title: &change.Title, Head: &change.Head, Base: &change.Base, Body: &change.Body,
		})
		return Request{URL: opened.GetHTMLURL(), Number: opened.GetNumber(), Opened: true}, err
	}, func(err error) bool {
		var rejected *github.ErrorResponse
		return errors.As(err, &rejected) && mentions(rejected, "already exists")
	}, func(err error) error {
		return g.problem(ctx, fmt.Sprintf("opening a pull request from %q to %q", change.Head, change.Base), err)
	})
}
