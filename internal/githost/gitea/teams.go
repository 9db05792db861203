package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
)

// team is a team of an organization.
type team struct {
	Name       string            `json:"name"`
	Permission string            `json:"permission"`
	Units      map[string]string `json:"units_map"`
}

// access returns the team's permission for the code of its repositories.
func (t team) access() string {
	if code := t.Units["repo.code"]; code != "" && t.Permission != "admin" && t.Permission != "owner" {
		return code
	}
	return t.Permission
}

// Permissions returns the team permissions of Gitea and the equivalent names on other hosts.
func Permissions() []string {
	return []string{"read", "write", "admin", "pull", "triage", "push", "maintain"}
}

// rank orders permissions.
var rank = map[string]int{
	"none": 0, "read": 1, "pull": 1, "triage": 1, "write": 2, "push": 2, "maintain": 2, "admin": 3, "owner": 4,
}

// Access implements rest.Teams. The permission of a team applies to all its repositories, so bootstrap does not
// change it, and returns an error for a team with a lower permission.
func (s teams) Access(ctx context.Context, wanted githost.Team) (had string, err error) {
	d := s.of
	name := strings.ToLower(wanted.Name)
	if err := s.readPresent(ctx); err != nil {
		return "", err
	}
	found, ok := d.present[name]
	if ok {
		had = wanted.Permission
	} else {
		if err := s.readAll(ctx); err != nil {
			return "", err
		}
		if found, ok = d.all[name]; !ok {
			return "", hint.Errorf("check --team", "organization %s has no team %q", d.Hosted.Owner, wanted.Name)
		}
	}
	if rank[found.access()] < rank[wanted.Permission] {
		return "", hint.Errorf(fmt.Sprintf("change the team's access in %s, or request less with --team=%s", d.Hosted.HTTPURL("/org/"+d.Hosted.Owner+"/teams/"+found.Name), found.Name),
			"team %s has %s access to its repositories, not %s", found.Name, found.access(), wanted.Permission)
	}
	return had, nil
}

// readPresent reads the teams with access to the repository.
func (s teams) readPresent(ctx context.Context) error {
	d := s.of
	if d.present != nil || d.repo == nil {
		return nil
	}
	var teams []team
	err := d.get(ctx, d.path("teams"), &teams)
	if rest.Status(err) == http.StatusMethodNotAllowed {
		return hint.Errorf("omit --team", "repository %s belongs to a user, and users have no teams", d.Name())
	}
	d.present = named(teams)
	return d.API.Explain(ctx, "listing the teams of "+d.Name(), err)
}

// readAll reads the teams of the organization.
func (s teams) readAll(ctx context.Context) error {
	d := s.of
	if d.all != nil {
		return nil
	}
	teams, err := pages[team](ctx, d, "/orgs/"+url.PathEscape(d.Hosted.Owner)+"/teams", nil)
	if rest.Denied(err) && len(requiredScopes(err)) == 0 {
		return hint.Errorf("use a token of a member, or omit --team", "listing the teams of organization %s: %s is not a member", d.Hosted.Owner, d.API.Who())
	}
	d.all = named(teams)
	return d.API.Explain(ctx, "listing the teams of organization "+d.Hosted.Owner, err)
}

func named(teams []team) map[string]team {
	all := map[string]team{}
	for _, t := range teams {
		all[strings.ToLower(t.Name)] = t
	}
	return all
}

// Grant implements rest.Teams.
func (s teams) Grant(ctx context.Context, wanted githost.Team, _ string) error {
	d := s.of
	if err := s.readAll(ctx); err != nil {
		return err
	}
	err := d.write(ctx, http.MethodPut, d.path("teams", d.all[strings.ToLower(wanted.Name)].Name), nil, nil)
	if rest.Status(err) == http.StatusUnprocessableEntity && strings.Contains(rest.Message(err), "already added") {
		return nil // a team with access to all repositories has access to a new one
	}
	return err
}
