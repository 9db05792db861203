package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// githubRoles are GitHub's words for access, the widest first.
var githubRoles = []string{"admin", "maintain", "push", "triage", "pull"}

// GitHubPermissions are the accesses that a team can have.
func GitHubPermissions() []string {
	all := slices.Clone(githubRoles)
	slices.Reverse(all)
	return all
}

// teamChanges finds the teams that lack their access.
func (g *GitHub) teamChanges(ctx context.Context) ([]string, error) {
	var changes []string
	g.found.teams = nil
	for _, team := range g.Teams {
		has, err := g.teamAccess(ctx, team)
		switch {
		case err != nil:
			return nil, err
		case has == "":
			changes = append(changes, fmt.Sprintf("grant the team %s/%s the access %q", g.Owner, team.Name, team.Permission))
		case has != team.Permission && g.Reconcile:
			changes = append(changes, fmt.Sprintf("grant the team %s/%s the access %q, which has %q", g.Owner, team.Name, team.Permission, has))
		default:
			continue
		}
		g.found.teams = append(g.found.teams, team)
	}
	return changes, nil
}

// teamAccess returns what a team may do, "" for nothing.
func (g *GitHub) teamAccess(ctx context.Context, team Team) (string, error) {
	doing := fmt.Sprintf("looking for the team %s/%s", g.Owner, team.Name)
	if g.found.repository != nil {
		repository, _, err := g.api.Teams.IsTeamRepoBySlug(ctx, g.Owner, team.Name, g.Owner, g.Name)
		if err == nil {
			return widest(repository.GetPermissions()), nil
		}
		if statusOf(err) != http.StatusNotFound {
			return "", g.refused(ctx, doing, err)
		}
	}
	_, _, err := g.api.Teams.GetTeamBySlug(ctx, g.Owner, team.Name)
	if statusOf(err) == http.StatusNotFound {
		return "", failure("name it as it stands in its address, see "+g.settings("orgs/"+g.Owner+"/teams"), "there is no team %q in the organisation %s, or the token cannot read it", team.Name, g.Owner)
	}
	return "", g.refused(ctx, doing, err)
}

// widest returns the widest of the accesses that are given.
func widest(given map[string]bool) string {
	for _, role := range githubRoles {
		if given[role] {
			return role
		}
	}
	return ""
}

func (g *GitHub) giveTeams(ctx context.Context) error {
	for _, team := range g.found.teams {
		_, err := g.api.Teams.AddTeamRepoBySlug(ctx, g.Owner, team.Name, g.Owner, g.Name, &github.TeamAddTeamRepoOptions{Permission: team.Permission})
		if err != nil {
			return g.refused(ctx, fmt.Sprintf("granting the team %s/%s access", g.Owner, team.Name), err)
		}
	}
	g.found.teams = nil
	return nil
}

// keysAllowed refuses where no deploy key could be added, as far as GitHub says so.
func (g *GitHub) keysAllowed(ctx context.Context) error {
	if !g.Personal {
		if err := g.policyAllowsKeys(ctx); err != nil {
			return err
		}
	}
	if g.found.repository == nil {
		return nil // whoever makes it administers it
	}
	_, err := g.keys(ctx)
	return err
}

// policyAllowsKeys asks for a field that is newer than the library.
func (g *GitHub) policyAllowsKeys(ctx context.Context) error {
	request, err := g.api.NewRequest(http.MethodGet, "orgs/"+g.Owner, nil)
	if err != nil {
		return err
	}
	var policy struct {
		Enabled *bool `json:"deploy_keys_enabled_for_repositories"`
	}
	if _, err := g.api.Do(ctx, request, &policy); err != nil {
		return g.refused(ctx, "reading the organisation "+g.Owner, err)
	}
	if no(policy.Enabled) {
		return g.keysForbidden()
	}
	return nil
}

func (g *GitHub) keysForbidden() error {
	return failure("use --token-auth, or have an owner allow deploy keys at "+g.settings("organizations/"+g.Owner+"/settings/member_privileges"),
		"deploy keys are not allowed for %s by a policy of its owner", g.Hosted)
}

// keys returns the deploy keys of the repository.
func (g *GitHub) keys(ctx context.Context) ([]*github.Key, error) {
	var all []*github.Key
	for page := 1; page != 0; {
		some, answer, err := g.api.Repositories.ListKeys(ctx, g.Owner, g.Name, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.refused(ctx, "listing the deploy keys of "+g.String(), err)
		}
		all, page = append(all, some...), answer.NextPage
	}
	return all, nil
}

// sameKey compares keys without the comments behind them.
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
	readOnly, right := !g.ReadWriteKey, false
	var old []*github.Key
	for _, k := range present {
		same := sameKey(k.GetKey(), key.Public)
		switch {
		case same && k.GetReadOnly() == readOnly:
			right = true
		case same: // GitHub takes a key once, so that this one goes before the other comes
			if err := g.removeKey(ctx, k); err != nil {
				return err
			}
		case k.GetTitle() == key.Title && !key.KeepOthers:
			old = append(old, k)
		}
	}
	if !right {
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
	var refusal *github.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal) && says(refusal, "already in use"):
		return failure("use another key: on GitHub a key belongs to one repository or user", "the key is in use elsewhere on %s and cannot be a deploy key of %s", g.Hostname, g.Hosted)
	case errors.As(err, &refusal) && says(refusal, "deploy keys are disabled"):
		return g.keysForbidden()
	default:
		return g.refused(ctx, fmt.Sprintf("adding the deploy key %q to %s", key.Title, g.Hosted), err)
	}
}

func (g *GitHub) removeKey(ctx context.Context, key *github.Key) error {
	_, err := g.api.Repositories.DeleteKey(ctx, g.Owner, g.Name, key.GetID())
	if statusOf(err) == http.StatusNotFound {
		return nil // somebody was faster
	}
	return g.refused(ctx, fmt.Sprintf("removing the old deploy key %q of %s", key.GetTitle(), g.Hosted), err)
}

// RequestChange implements Requester.
func (g *GitHub) RequestChange(ctx context.Context, change Change) (Request, error) {
	found, err := g.openRequest(ctx, change)
	if err != nil || found.Number != 0 {
		return found, err
	}
	made, _, err := g.api.PullRequests.Create(ctx, g.Owner, g.Name, &github.NewPullRequest{
		Title: &change.Title, Head: &change.Head, Base: &change.Base, Body: &change.Body,
	})
	var refusal *github.ErrorResponse
	switch {
	case err == nil:
		return Request{URL: made.GetHTMLURL(), Number: made.GetNumber(), Opened: true}, nil
	case errors.As(err, &refusal) && says(refusal, "already exists"):
		return g.openRequest(ctx, change)
	default:
		return Request{}, g.refused(ctx, fmt.Sprintf("opening a pull request from %q to %q", change.Head, change.Base), err)
	}
}

// openRequest returns the open pull request between the branches, none without a number.
func (g *GitHub) openRequest(ctx context.Context, change Change) (Request, error) {
	found, _, err := g.api.PullRequests.List(ctx, g.Owner, g.Name, &github.PullRequestListOptions{
		State: "open", Head: g.Owner + ":" + change.Head, Base: change.Base,
	})
	if err != nil || len(found) == 0 {
		return Request{}, g.refused(ctx, "looking for pull requests of "+g.String(), err)
	}
	return Request{URL: found[0].GetHTMLURL(), Number: found[0].GetNumber()}, nil
}
