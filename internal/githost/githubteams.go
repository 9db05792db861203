package githost

import (
	"context"
	"fmt"
	"net/http"
	"slices"

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

// githubTeams is the teams with access to a repository.
type githubTeams struct {
	*githubAPI
	// exists reports whether the repository exists.
	exists bool
}

// changes returns the teams that have to be granted access, and a description of
// each change.
func (g githubTeams) changes(ctx context.Context) (grants []Team, changes []string, err error) {
	for _, team := range g.Teams {
		has, err := g.permission(ctx, team)
		switch {
		case err != nil:
			return nil, nil, err
		case has == "":
			changes = append(changes, fmt.Sprintf("grant the team %s/%s the permission %q", g.Owner, team.Name, team.Permission))
		case has != team.Permission && g.Reconcile:
			changes = append(changes, fmt.Sprintf("change the permission of the team %s/%s to %q (it is %q)", g.Owner, team.Name, team.Permission, has))
		default:
			continue
		}
		grants = append(grants, team)
	}
	return grants, changes, nil
}

// permission returns the permission of a team, "" for none.
func (g githubTeams) permission(ctx context.Context, team Team) (string, error) {
	doing := fmt.Sprintf("reading the team %s/%s", g.Owner, team.Name)
	if g.exists {
		repository, _, err := g.client.Teams.IsTeamRepoBySlug(ctx, g.Owner, team.Name, g.Owner, g.Name)
		if err == nil {
			return highest(repository.GetPermissions()), nil
		}
		if status(err) != http.StatusNotFound {
			return "", g.problem(ctx, doing, err)
		}
	}
	_, _, err := g.client.Teams.GetTeamBySlug(ctx, g.Owner, team.Name)
	if status(err) == http.StatusNotFound {
		return "", hint.Errorf("use the name in its URL, see "+g.HTTPURL("orgs/"+g.Owner+"/teams"), "there is no team %q in the organization %s, or the token cannot read it", team.Name, g.Owner)
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

// add grants a team access.
func (g githubTeams) add(ctx context.Context, team Team) error {
	_, err := g.client.Teams.AddTeamRepoBySlug(ctx, g.Owner, team.Name, g.Owner, g.Name, &github.TeamAddTeamRepoOptions{Permission: team.Permission})
	return g.problem(ctx, fmt.Sprintf("granting the team %s/%s access", g.Owner, team.Name), err)
}
