package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// giteaTeam is a team of an organization.
type giteaTeam struct {
	Name       string            `json:"name"`
	Permission string            `json:"permission"`
	Units      map[string]string `json:"units_map"`
}

// access returns the permission of the team for the code of its repositories.
func (t giteaTeam) access() string {
	if code := t.Units["repo.code"]; code != "" && t.Permission != "admin" && t.Permission != "owner" {
		return code
	}
	return t.Permission
}

// giteaRank orders permissions.
var giteaRank = map[string]int{
	"none": 0, "read": 1, "pull": 1, "triage": 1, "write": 2, "push": 2, "maintain": 2, "admin": 3, "owner": 4,
}

// giteaTeams is the teams with access to a repository.
type giteaTeams struct {
	*giteaAPI
	repository string
	// path is the path of the teams in the API, "" before the repository exists.
	path string
}

// missing returns the names of the wanted teams that have to be granted access. The
// permission of a team applies to all its repositories, so bootstrap does not
// change it.
func (g giteaTeams) missing(ctx context.Context) ([]string, error) {
	if len(g.hosted.Teams) == 0 {
		return nil, nil
	}
	has, err := g.present(ctx)
	if err != nil {
		return nil, err
	}
	var all map[string]giteaTeam
	var missing []string
	for _, wanted := range g.hosted.Teams {
		team, found := has[strings.ToLower(wanted.Name)]
		if !found && all == nil {
			if all, err = g.ofOrganization(ctx); err != nil {
				return nil, err
			}
		}
		if !found {
			if team, found = all[strings.ToLower(wanted.Name)]; !found {
				return nil, hint.Errorf("check --team", "organization %s has no team %q", g.hosted.Owner, wanted.Name)
			}
			missing = append(missing, team.Name)
		}
		if giteaRank[team.access()] < giteaRank[wanted.Permission] {
			return nil, hint.Errorf(fmt.Sprintf("change that in %s, or request less with --team=%s", g.hosted.HTTPURL("/org/"+g.hosted.Owner+"/teams/"+team.Name), team.Name),
				"team %s has %s access to its repositories, not %s", team.Name, team.access(), wanted.Permission)
		}
	}
	return missing, nil
}

// present returns the teams with access by their names in lower case.
func (g giteaTeams) present(ctx context.Context) (map[string]giteaTeam, error) {
	has := map[string]giteaTeam{}
	if g.path == "" {
		return has, nil
	}
	var teams []giteaTeam
	err := g.call(ctx, "listing the teams of "+g.repository, http.MethodGet, g.path, nil, &teams)
	if status(err) == http.StatusMethodNotAllowed {
		return nil, hint.Errorf("omit --team", "repository %s belongs to a user, and users have no teams", g.repository)
	}
	for _, team := range teams {
		has[strings.ToLower(team.Name)] = team
	}
	return has, err
}

// ofOrganization returns the teams of the organization by their names in lower case.
func (g giteaTeams) ofOrganization(ctx context.Context) (map[string]giteaTeam, error) {
	all := map[string]giteaTeam{}
	err := giteaPages(ctx, g.giteaAPI, "listing the teams of organization "+g.hosted.Owner, "/orgs/"+url.PathEscape(g.hosted.Owner)+"/teams", nil, func(team giteaTeam) {
		all[strings.ToLower(team.Name)] = team
	})
	var known *hint.Error
	if status(err) == http.StatusForbidden && errors.As(err, &known) && len(requiredScopes(err)) == 0 {
		return nil, hint.Errorf("use a token of a member, or omit --team", "listing the teams of organization %s: %s is not a member", g.hosted.Owner, g.who())
	}
	return all, err
}

// add grants a team access.
func (g giteaTeams) add(ctx context.Context, team string) error {
	err := g.call(ctx, fmt.Sprintf("granting team %s access to %s", team, g.repository), http.MethodPut, g.path+"/"+url.PathEscape(team), nil, nil)
	if status(err) == http.StatusUnprocessableEntity && strings.Contains(message(err), "already added") {
		return nil // a team of all repositories has access to a new repository
	}
	return err
}
