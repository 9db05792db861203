package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// identify reads the account of the token and returns an error if the token is
// not valid, which reading a public repository does not show.
func (g *Gitea) identify(ctx context.Context) error {
	const doing = "checking the token"
	var account struct{ Login string }
	_, err := g.api.call(ctx, http.MethodGet, "/user", nil, nil, &account)
	g.account = account.Login
	switch {
	case status(err) == http.StatusForbidden && len(requiredScopes(err)) > 0:
		return nil // the token is valid, but has no permission to read its account
	case status(err) == http.StatusNotFound:
		return hint.Errorf("check --hostname: the host alone, as in --hostname=git.example.com", "%s: %s has no Gitea API", doing, g.hosted.Hostname)
	case status(err) == http.StatusBadRequest && g.hosted.Scheme == "http":
		return hint.Errorf("omit http:// in --hostname", "%s: %s does not accept HTTP requests", doing, g.hosted.Hostname)
	case err == nil && g.account == "":
		return hint.Errorf("check --hostname", "%s: %s is not a Gitea API", doing, g.hosted.Hostname)
	}
	return g.problem(ctx, doing, err)
}

// find reads the repository, if it exists.
func (g *Gitea) find(ctx context.Context) error {
	var found giteaRepository
	err := g.call(ctx, "reading repository "+g.hosted.String(), http.MethodGet, g.path(), nil, &found)
	switch {
	case status(err) == http.StatusNotFound:
		g.absent = true
		return nil
	case err != nil:
		return err
	case found.FullName == "":
		return hint.Errorf("check --hostname", "%s is not a Gitea API", g.hosted.Hostname)
	}
	g.repo = &found
	return nil
}

// surveyOwner returns an error if the repository cannot be created.
func (g *Gitea) surveyOwner(ctx context.Context) error {
	if g.hosted.Personal && g.account != "" && !strings.EqualFold(g.account, g.hosted.Owner) {
		return hint.Errorf(fmt.Sprintf("use a token of %s, or omit --personal if it is an organisation", g.hosted.Owner),
			"repository %s cannot be created: the token is of %s", g.hosted, g.account)
	}
	err := g.checkScopes(ctx, g.owner()+"/repos")
	if status(err) == http.StatusNotFound {
		return g.noOwner(ctx)
	}
	if err == nil {
		// Deploy keys require another scope than the creation.
		err = g.checkScopes(ctx, g.path("keys"))
		if status(err) == http.StatusNotFound {
			err = nil // there is no repository yet
		}
	}
	if err == nil && !g.hosted.Personal {
		err = g.mayCreate(ctx)
	}
	if err != nil {
		return err
	}
	return g.findNeighbour(ctx)
}

// checkScopes returns an error if the token has no scope for a POST request. It
// sends an empty one, which no server carries out, because the API does not list
// the scopes of a token.
func (g *Gitea) checkScopes(ctx context.Context, path string) error {
	_, err := g.api.call(ctx, http.MethodPost, path, nil, map[string]any{}, nil)
	switch status(err) {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return nil
	case http.StatusForbidden:
		if len(requiredScopes(err)) == 0 {
			return nil // other permissions are checked elsewhere, with better messages
		}
	}
	return g.problem(ctx, "checking the scopes of the token", err)
}

// noOwner returns the error for an organisation that does not exist.
func (g *Gitea) noOwner(ctx context.Context) error {
	var user struct{ Login string }
	if _, err := g.api.call(ctx, http.MethodGet, "/users/"+url.PathEscape(g.hosted.Owner), nil, nil, &user); err == nil && user.Login != "" {
		return hint.Errorf("add --personal", "%s is a user on %s, not an organisation", user.Login, g.hosted.Hostname)
	}
	return hint.Errorf("check --owner, or add --personal if it is a user",
		"there is no organisation %s on %s, or %s cannot read it", g.hosted.Owner, g.hosted.Hostname, g.who())
}

// mayCreate returns an error if the account has no permission to create
// repositories in the organisation, nil if the token cannot read it.
func (g *Gitea) mayCreate(ctx context.Context) error {
	if g.account == "" {
		return nil
	}
	var may struct {
		Create bool `json:"can_create_repository"`
		Admin  bool `json:"is_admin"`
		Owner  bool `json:"is_owner"`
	}
	path := fmt.Sprintf("/users/%s/orgs/%s/permissions", url.PathEscape(g.account), url.PathEscape(g.hosted.Owner))
	_, err := g.api.call(ctx, http.MethodGet, path, nil, nil, &may)
	switch {
	case status(err) == http.StatusForbidden || status(err) == http.StatusNotFound:
		return nil // unknown: the creation may fail
	case err != nil:
		return g.problem(ctx, "checking the rights in organisation "+g.hosted.Owner, err)
	case !may.Create && !may.Admin && !may.Owner:
		return hint.Errorf("ask an owner of the organisation to create the repository, or to let one of your teams create repositories",
			"%s has no permission to create repositories in organisation %s", g.account, g.hosted.Owner)
	}
	return nil
}

// findNeighbour reads any repository for the SSH host of the one that will be
// created.
func (g *Gitea) findNeighbour(ctx context.Context) error {
	if g.hosted.TokenAuth || g.hosted.SSHHostname != "" {
		return nil
	}
	var found struct{ Data []giteaRepository }
	if _, err := g.api.call(ctx, http.MethodGet, "/repos/search", url.Values{"limit": {"1"}}, nil, &found); err != nil {
		return g.problem(ctx, "reading the SSH address of "+g.hosted.Hostname, err)
	}
	if len(found.Data) > 0 {
		g.neighbour = &found.Data[0]
	}
	return nil
}

// surveyRepository returns an error if bootstrap cannot use the repository, and why
// a push would be rejected.
func (g *Gitea) surveyRepository(ctx context.Context) (protected string, err error) {
	name := g.fullName()
	settings := "change it in " + g.hosted.HTTPURL(name+"/settings")
	switch {
	case g.repo.Archived:
		return "", hint.Errorf(settings+", or choose another repository", "repository %s is archived and read-only", name)
	case g.repo.Mirror:
		return "", hint.Errorf("choose another repository, or the one that it mirrors", "repository %s is a mirror and read-only", name)
	case !g.repo.Permissions.Push:
		return "", hint.Errorf("ask for write access, or use a token of an account that has it", "%s has no permission to push to %s", g.who(), name)
	case g.want.ChangeRequest && !g.repo.HasPullRequests:
		return "", hint.Errorf(settings, "repository %s has no pull requests", name)
	case g.want.KeyTitle != "" && !g.repo.Permissions.Admin:
		return "", hint.Errorf("use a token of an administrator of it, or use --token-auth",
			"adding a deploy key: %s is not an administrator of %s", g.who(), name)
	}
	if err := g.checkScopes(ctx, g.path("keys")); err != nil {
		return "", err
	}
	return g.surveyBranch(ctx)
}

// surveyEdits returns the changes of settings that --reconcile requires.
func (g *Gitea) surveyEdits() []string {
	if !g.hosted.Reconcile {
		return nil
	}
	var changes []string
	g.edits = map[string]any{}
	if private := g.hosted.Visibility != "public"; private != g.repo.Private {
		g.edits["private"] = private
		changes = append(changes, fmt.Sprintf("make %s %s", g.fullName(), g.hosted.Visibility))
	}
	if g.hosted.Description != "" && g.hosted.Description != g.repo.Description {
		g.edits["description"] = g.hosted.Description
		changes = append(changes, "change the description of "+g.fullName())
	}
	return changes
}

// surveyBranch returns why a push to the branch would be rejected.
func (g *Gitea) surveyBranch(ctx context.Context) (string, error) {
	var branch struct {
		Protected   bool   `json:"protected"`
		UserCanPush bool   `json:"user_can_push"`
		Rule        string `json:"effective_branch_protection_name"`
	}
	doing := fmt.Sprintf("reading branch %s of %s", g.want.Branch, g.fullName())
	err := g.call(ctx, doing, http.MethodGet, g.path(append([]string{"branches"}, strings.Split(g.want.Branch, "/")...)...), nil, &branch)
	switch {
	case status(err) == http.StatusNotFound:
		return g.surveyRules(ctx, doing)
	case err != nil || !branch.Protected || branch.UserCanPush:
		return "", err
	}
	return protection(branch.Rule, g.want.Branch, g.who()), nil
}

func protection(rule, branch, who string) string {
	if rule == "" || rule == branch {
		return fmt.Sprintf("branch %s is protected, and %s is not allowed to push to it", branch, who)
	}
	return fmt.Sprintf("branch %s is protected by rule %s, and %s is not allowed to push to it", branch, rule, who)
}

// giteaRule is a branch protection rule.
type giteaRule struct {
	Name   string   `json:"rule_name"`
	Push   bool     `json:"enable_push"`
	Listed bool     `json:"enable_push_whitelist"`
	Users  []string `json:"push_whitelist_usernames"`
	Teams  []string `json:"push_whitelist_teams"`
}

// surveyRules returns why a push that creates the branch would be rejected. Only
// administrators of the repository can read the rules.
func (g *Gitea) surveyRules(ctx context.Context, doing string) (string, error) {
	if !g.repo.Permissions.Admin {
		return "", nil
	}
	var rules []giteaRule
	if err := g.call(ctx, doing, http.MethodGet, g.path("branch_protections"), nil, &rules); err != nil {
		return "", err
	}
	for _, rule := range rules {
		matches, err := path.Match(rule.Name, g.want.Branch)
		if rule.Name != g.want.Branch && (err != nil || !matches) {
			continue
		}
		listed := len(rule.Teams) > 0 || slices.ContainsFunc(rule.Users, func(user string) bool { return strings.EqualFold(user, g.account) })
		if !rule.Push || rule.Listed && !listed {
			return protection(rule.Name, g.want.Branch, g.who()), nil
		}
		return "", nil // the first rule that matches applies
	}
	return "", nil
}

// giteaTeam is a team of an organisation.
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

// surveyTeams sets the teams that have to be granted access. The permission of a
// team applies to all its repositories, so bootstrap does not change it.
func (g *Gitea) surveyTeams(ctx context.Context) error {
	if len(g.hosted.Teams) == 0 {
		return nil
	}
	has, err := g.repositoryTeams(ctx)
	if err != nil {
		return err
	}
	var all map[string]giteaTeam
	for _, wanted := range g.hosted.Teams {
		team, found := has[strings.ToLower(wanted.Name)]
		if !found && all == nil {
			if all, err = g.organisationTeams(ctx); err != nil {
				return err
			}
		}
		if !found {
			if team, found = all[strings.ToLower(wanted.Name)]; !found {
				return hint.Errorf("check --team", "organisation %s has no team %q", g.hosted.Owner, wanted.Name)
			}
			g.teams = append(g.teams, team.Name)
		}
		if giteaRank[team.access()] < giteaRank[wanted.Permission] {
			return hint.Errorf(fmt.Sprintf("change that in %s, or request less with --team=%s", g.hosted.HTTPURL("/org/"+g.hosted.Owner+"/teams/"+team.Name), team.Name),
				"team %s has %s access to its repositories, not %s", team.Name, team.access(), wanted.Permission)
		}
	}
	return nil
}

// repositoryTeams returns the teams with access by their names in lower case.
func (g *Gitea) repositoryTeams(ctx context.Context) (map[string]giteaTeam, error) {
	if g.repo == nil {
		return nil, nil //nolint:nilnil // there is no repository yet
	}
	var teams []giteaTeam
	err := g.call(ctx, "listing the teams of "+g.fullName(), http.MethodGet, g.path("teams"), nil, &teams)
	if status(err) == http.StatusMethodNotAllowed {
		return nil, hint.Errorf("omit --team", "repository %s belongs to a user, and users have no teams", g.fullName())
	}
	has := map[string]giteaTeam{}
	for _, team := range teams {
		has[strings.ToLower(team.Name)] = team
	}
	return has, err
}

// organisationTeams returns the teams of the organisation by their names in lower case.
func (g *Gitea) organisationTeams(ctx context.Context) (map[string]giteaTeam, error) {
	all := map[string]giteaTeam{}
	err := giteaPages(ctx, g, "listing the teams of organisation "+g.hosted.Owner, "/orgs/"+url.PathEscape(g.hosted.Owner)+"/teams", nil, func(team giteaTeam) {
		all[strings.ToLower(team.Name)] = team
	})
	var known *hint.Error
	if status(err) == http.StatusForbidden && errors.As(err, &known) && len(requiredScopes(err)) == 0 {
		return nil, hint.Errorf("use a token of a member, or omit --team", "listing the teams of organisation %s: %s is not a member", g.hosted.Owner, g.who())
	}
	return all, err
}
