// Package github manages repositories and pull requests of github.com and GitHub Enterprise servers.
package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// driver implements rest.Driver.
type driver struct {
	API    *rest.API
	Hosted githost.Hosted
	client *github.Client

	// Set by Read.
	token token
	owner *github.User
	// remote is the repository, nil if it does not exist.
	remote *github.Repository
}

// keys, teams and requests implement rest.Keys, rest.Teams and rest.Requests.
type (
	keys     struct{ of *driver }
	teams    struct{ of *driver }
	requests struct{ of *driver }
)

// New returns a repository on GitHub. The client comes from a rest.Caller.
func New(h githost.Hosted, client *http.Client) *rest.Host {
	base := baseURL(h)
	hub := github.NewClient(client).WithAuthToken(h.Token)
	hub.BaseURL = &base
	d := &driver{Hosted: h, client: hub}
	d.API = &rest.API{
		Hosted: h, Name: "GitHub", Variable: "GITHUB_TOKEN", Tokens: "settings/tokens",
		Denied: "check the names, and the permissions of the token and its owner", Rejected: "check the names and the flags", Cause: d.cause,
	}
	return &rest.Host{API: d.API, Driver: d, Keys: keys{d}, Teams: teams{d}, Requests: requests{d}, Words: rest.Words{
		Repository: "repository", Request: "pull request",
		Grant:   `grant the team ` + h.Owner + `/TEAM the permission "PERMISSION"`,
		Regrant: `change the permission of the team ` + h.Owner + `/TEAM to "PERMISSION" (it is "HAD")`,
	}}
}

// baseURL returns the API URL of a host.
func baseURL(h githost.Hosted) url.URL {
	u := url.URL{Scheme: h.Scheme, Host: h.Hostname, Path: "/api/v3/"}
	if u.Scheme == "" {
		u.Scheme = "https"
	}
	if h.Hostname == "github.com" || strings.HasSuffix(h.Hostname, ".ghe.com") {
		u.Host, u.Path = "api."+h.Hostname, "/"
	}
	return u
}

// Name implements rest.Driver.
func (d *driver) Name() string { return d.Hosted.String() }

// Planned implements rest.Driver.
func (d *driver) Planned() rest.Properties { return rest.Properties{Path: d.Name()} }

// SSHAddress implements rest.Driver. The SSH host is the hostname.
func (d *driver) SSHAddress(context.Context) (string, error) { return "", nil }

// use sets the repository, and returns it for rest.Host.
func (d *driver) use(r *github.Repository) *rest.Properties {
	d.remote = r
	return &rest.Properties{Path: d.Name(), Visibility: r.GetVisibility(), Description: r.GetDescription(), Branch: r.GetDefaultBranch()}
}

// Create implements rest.Driver.
func (d *driver) Create(ctx context.Context) (*rest.Properties, error) {
	h := d.Hosted
	private, org := h.Visibility != "public", h.Owner
	wanted := &github.Repository{Name: &h.Name, Private: &private}
	if h.Visibility == "internal" {
		wanted.Visibility = &h.Visibility
	}
	if h.Description != "" {
		wanted.Description = &h.Description
	}
	if h.Personal {
		org = ""
	}
	created, err := call(d.client.Repositories.Create(ctx, org, wanted))
	if err != nil {
		return nil, err
	}
	return d.use(created), nil
}

// Edit implements rest.Driver.
func (d *driver) Edit(ctx context.Context, edits rest.Edits) (*rest.Properties, error) {
	wanted := &github.Repository{}
	if edits.Visibility != "" {
		wanted.Visibility = &edits.Visibility
	}
	if edits.Description != "" {
		wanted.Description = &edits.Description
	}
	edited, err := call(d.client.Repositories.Edit(ctx, d.Hosted.Owner, d.Hosted.Name, wanted))
	if err != nil {
		return nil, err
	}
	return d.use(edited), nil
}

// List implements rest.Keys.
func (s keys) List(ctx context.Context) ([]rest.Key, error) {
	d := s.of
	return rest.Pages(1, func(page int) ([]rest.Key, int, error) {
		some, response, err := d.client.Repositories.ListKeys(ctx, d.Hosted.Owner, d.Hosted.Name, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, 0, rejected(err)
		}
		var keys []rest.Key
		for _, k := range some {
			keys = append(keys, rest.Key{ID: k.GetID(), Title: k.GetTitle(), Public: k.GetKey(), Writes: !k.GetReadOnly()})
		}
		return keys, response.NextPage, nil
	})
}

// Add implements rest.Keys.
func (s keys) Add(ctx context.Context, title, public string) error {
	d := s.of
	readOnly := !d.Hosted.ReadWriteKey
	_, err := call(d.client.Repositories.CreateKey(ctx, d.Hosted.Owner, d.Hosted.Name, &github.Key{Title: &title, Key: &public, ReadOnly: &readOnly}))
	switch {
	case strings.Contains(rest.Message(err), "already in use"):
		return hint.Errorf("use another key: on GitHub a key belongs to one repository or user", "the key is in use elsewhere on %s and cannot be a deploy key of %s", d.Hosted.Hostname, d.Hosted)
	case strings.Contains(rest.Message(err), "deploy keys are disabled"):
		return d.noKeys()
	}
	return err
}

// Remove implements rest.Keys.
func (s keys) Remove(ctx context.Context, key rest.Key) error {
	d := s.of
	_, err := d.client.Repositories.DeleteKey(ctx, d.Hosted.Owner, d.Hosted.Name, key.ID)
	return rejected(err)
}

// Find implements rest.Requests.
func (s requests) Find(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	found, err := call(d.client.PullRequests.List(ctx, d.Hosted.Owner, d.Hosted.Name, &github.PullRequestListOptions{
		State: "open", Head: d.Hosted.Owner + ":" + change.Head, Base: change.Base,
	}))
	if err != nil || len(found) == 0 {
		return githost.Request{}, err
	}
	return githost.Request{URL: found[0].GetHTMLURL(), Number: found[0].GetNumber()}, nil
}

// Open implements rest.Requests.
func (s requests) Open(ctx context.Context, change githost.Change) (githost.Request, error) {
	d := s.of
	opened, err := call(d.client.PullRequests.Create(ctx, d.Hosted.Owner, d.Hosted.Name, &github.NewPullRequest{
		Title: &change.Title, Head: &change.Head, Base: &change.Base, Body: &change.Body,
	}))
	return githost.Request{URL: opened.GetHTMLURL(), Number: opened.GetNumber()}, err
}

// Access implements rest.Teams.
func (s teams) Access(ctx context.Context, team githost.Team) (string, error) {
	d := s.of
	owner := d.Hosted.Owner
	doing := fmt.Sprintf("reading the team %s/%s", owner, team.Name)
	if d.remote != nil {
		repository, err := call(d.client.Teams.IsTeamRepoBySlug(ctx, owner, team.Name, owner, d.Hosted.Name))
		if err == nil {
			return highest(repository.GetPermissions()), nil
		}
		if !rest.Missing(err) {
			return "", d.API.Explain(ctx, doing, err)
		}
	}
	_, err := call(d.client.Teams.GetTeamBySlug(ctx, owner, team.Name))
	if rest.Missing(err) {
		return "", hint.Errorf("use the name in the team's URL; see "+d.Hosted.HTTPURL("orgs/"+owner+"/teams"), "team %q not found in the organization %s, or the token cannot read it", team.Name, owner)
	}
	return "", d.API.Explain(ctx, doing, err)
}

// Permissions returns the permissions of teams, the lowest first.
func Permissions() []string { return []string{"pull", "triage", "push", "maintain", "admin"} }

// highest returns the highest permission.
func highest(given map[string]bool) (permission string) {
	for _, p := range Permissions() {
		if given[p] {
			permission = p
		}
	}
	return permission
}

// Grant implements rest.Teams.
func (s teams) Grant(ctx context.Context, team githost.Team, _ string) error {
	d := s.of
	_, err := d.client.Teams.AddTeamRepoBySlug(ctx, d.Hosted.Owner, team.Name, d.Hosted.Owner, d.Hosted.Name, &github.TeamAddTeamRepoOptions{Permission: team.Permission})
	return rejected(err)
}
