package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/fluxkit/flux/internal/hint"
)

// githubRoles are the permissions of teams, the highest first.
var githubRoles = []string{"admin", "maintain", "push", "triage", "pull"}

// GitHubPermissions returns the permissions of teams, the lowest first.
func GitHubPermissions() []string {
	all := slices.Clone(githubRoles)
	slices.Reverse(all)
	return all
}

// teamChanges returns the grants that teams need.
func (g *GitHub) teamChanges(ctx context.Context) ([]string, error) {
	var changes []string
	g.found.teams = nil
	for _, team := range g.Teams {
		has, err := g.teamAccess(ctx, team)
		switch {
		case err != nil:
			return nil, err
		case has == "":
			changes = append(changes, fmt.Sprintf("grant the team %s/%s the permission %q", g.Owner, team.Name, team.Permission))
		case has != team.Permission && g.Reconcile:
			changes = append(changes, fmt.Sprintf("change the permission of the team %s/%s to %q (it is %q)", g.Owner, team.Name, team.Permission, has))
		default:
			continue
		}
		g.found.teams = append(g.found.teams, team)
	}
	return changes, nil
}

// teamAccess returns the permission of a team, "" for none.
func (g *GitHub) teamAccess(ctx context.Context, team Team) (string, error) {
	doing := fmt.Sprintf("reading the team %s/%s", g.Owner, team.Name)
	if g.found.repository != nil {
		repository, _, err := g.api.Teams.IsTeamRepoBySlug(ctx, g.Owner, team.Name, g.Owner, g.Name)
		if err == nil {
			return highest(repository.GetPermissions()), nil
		}
		if status(err) != http.StatusNotFound {
			return "", g.problem(ctx, doing, err)
		}
	}
	_, _, err := g.api.Teams.GetTeamBySlug(ctx, g.Owner, team.Name)
	if status(err) == http.StatusNotFound {
		return "", hint.Errorf("use the name in its URL, see "+g.settings("orgs/"+g.Owner+"/teams"), "there is no team %q in the organisation %s, or the token cannot read it", team.Name, g.Owner)
	}
	return "", g.problem(ctx, doing, err)
}

// highest returns the highest permission.
func highest(given map[string]bool) string {
	for _, role := range githubRoles {
		if given[role] {
			return role
		}
	}
	return ""
}

func (g *GitHub) grantTeams(ctx context.Context) error {
	for _, team := range g.found.teams {
		_, err := g.api.Teams.AddTeamRepoBySlug(ctx, g.Owner, team.Name, g.Owner, g.Name, &github.TeamAddTeamRepoOptions{Permission: team.Permission})
		if err != nil {
			return g.problem(ctx, fmt.Sprintf("granting the team %s/%s access", g.Owner, team.Name), err)
		}
	}
	g.found.teams = nil
	return nil
}

// keysAllowed returns an error if deploy keys are known not to be allowed.
func (g *GitHub) keysAllowed(ctx context.Context) error {
	if !g.Personal {
		if err := g.policyAllowsKeys(ctx); err != nil {
			return err
		}
	}
	if g.found.repository == nil {
		return nil // the account that creates it is its administrator
	}
	_, err := g.keys(ctx)
	return err
}

// policyAllowsKeys reads a field that the library does not have.
func (g *GitHub) policyAllowsKeys(ctx context.Context) error {
	request, err := g.api.NewRequest(http.MethodGet, "orgs/"+g.Owner, nil)
	if err != nil {
		return err
	}
	var policy struct {
		Enabled *bool `json:"deploy_keys_enabled_for_repositories"`
	}
	if _, err := g.api.Do(ctx, request, &policy); err != nil {
		return g.problem(ctx, "reading the organisation "+g.Owner, err)
	}
	if no(policy.Enabled) {
		return g.keysForbidden()
	}
	return nil
}

func (g *GitHub) keysForbidden() error {
	return hint.Errorf("use --token-auth, or have an owner allow deploy keys at "+g.settings("organizations/"+g.Owner+"/settings/member_privileges"),
		"deploy keys are not allowed for %s by a policy of its owner", g.Hosted)
}

// keys returns the deploy keys of the repository.
func (g *GitHub) keys(ctx context.Context) ([]*github.Key, error) {
	var all []*github.Key
	for page := 1; page != 0; {
		some, response, err := g.api.Repositories.ListKeys(ctx, g.Owner, g.Name, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.problem(ctx, "listing the deploy keys of "+g.String(), err)
		}
		all, page = append(all, some...), response.NextPage
	}
	return all, nil
}

// sameKey compares public keys without their comments.
func sameKey(a, b string) bool {
	one, other := strings.Fields(a), strings.Fields(b)
	return len(one) >= 2 && len(other) >= 2 && one[0] == other[0] && one[1] == other[1]
}

// DeployKey implements Host.
func (g *GitHub) DeployKey(ctx context.Context, key DeployKey) error {
	present, err := g.keys(ctx)
	if err != nil {
		return err
	}
	readOnly, exists := !g.ReadWriteKey, false
	var old []*github.Key
	for _, k := range present {
		same := sameKey(k.GetKey(), key.Public)
		switch {
		case same && k.GetReadOnly() == readOnly:
			exists = true
		case same: // it is removed first, because GitHub accepts a key only once
			if err := g.removeKey(ctx, k); err != nil {
				return err
			}
		case k.GetTitle() == key.Title && !key.KeepOthers:
			old = append(old, k)
		}
	}
	if !exists {
		if err := g.addKey(ctx, key, readOnly); err != nil {
			return err
		}
	}
	for _, k := range old {
		if err := g.removeKey(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (g *GitHub) addKey(ctx context.Context, key DeployKey, readOnly bool) error {
	_, _, err := g.api.Repositories.CreateKey(ctx, g.Owner, g.Name, &github.Key{Title: &key.Title, Key: &key.Public, ReadOnly: &readOnly})
	var rejected *github.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected) && mentions(rejected, "already in use"):
		return hint.Errorf("use another key: on GitHub a key belongs to one repository or user", "the key is in use elsewhere on %s and cannot be a deploy key of %s", g.Hostname, g.Hosted)
	case errors.As(err, &rejected) && mentions(rejected, "deploy keys are disabled"):
		return g.keysForbidden()
	default:
		return g.problem(ctx, fmt.Sprintf("adding the deploy key %q to %s", key.Title, g.Hosted), err)
	}
}

func (g *GitHub) removeKey(ctx context.Context, key *github.Key) error {
	_, err := g.api.Repositories.DeleteKey(ctx, g.Owner, g.Name, key.GetID())
	if status(err) == http.StatusNotFound {
		return nil // another run has removed it
	}
	return g.problem(ctx, fmt.Sprintf("removing the old deploy key %q of %s", key.GetTitle(), g.Hosted), err)
}

// RequestChange implements Requester.
func (g *GitHub) RequestChange(ctx context.Context, change Change) (Request, error) {
	found, err := g.openRequest(ctx, change)
	if err != nil || found.Number != 0 {
		return found, err
	}
	opened, _, err := g.api.PullRequests.Create(ctx, g.Owner, g.Name, &github.NewPullRequest{
		Title: &change.Title, Head: &change.Head, Base: &change.Base, Body: &change.Body,
	})
	var rejected *github.ErrorResponse
	switch {
	case err == nil:
		return Request{URL: opened.GetHTMLURL(), Number: opened.GetNumber(), Opened: true}, nil
	case errors.As(err, &rejected) && mentions(rejected, "already exists"):
		return g.openRequest(ctx, change)
	default:
		return Request{}, g.problem(ctx, fmt.Sprintf("opening a pull request from %q to %q", change.Head, change.Base), err)
	}
}

// openRequest returns the open pull request between two branches, with number 0
// if there is none.
func (g *GitHub) openRequest(ctx context.Context, change Change) (Request, error) {
	found, _, err := g.api.PullRequests.List(ctx, g.Owner, g.Name, &github.PullRequestListOptions{
		State: "open", Head: g.Owner + ":" + change.Head, Base: change.Base,
	})
	if err != nil || len(found) == 0 {
		return Request{}, g.problem(ctx, "listing the pull requests of "+g.String(), err)
	}
	return Request{URL: found[0].GetHTMLURL(), Number: found[0].GetNumber()}, nil
}
