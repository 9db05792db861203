package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// identify finds out whether the token is valid and whom it belongs to. Reading
// the repository would not do: a public one is shown to anybody.
func (g *Gitea) identify(ctx context.Context) error {
	const doing = "checking the token"
	var account struct{ Login string }
	_, err := g.exchange(ctx, http.MethodGet, "/user", nil, &account)
	g.account = account.Login
	switch {
	case status(err) == http.StatusForbidden && len(scopesAsked(err)) > 0:
		return nil // it is valid, and may not say whose it is
	case status(err) == http.StatusNotFound:
		return failure("check --hostname: the host alone, as in --hostname=git.example.com", "%s: %s has no API of Gitea", doing, g.hosted.Hostname)
	case status(err) == http.StatusBadRequest && g.hosted.Scheme == "http":
		return failure("omit http:// in --hostname", "%s: %s does not accept HTTP requests", doing, g.hosted.Hostname)
	case err == nil && g.account == "":
		return failure("check --hostname", "%s: %s is not a Gitea API", doing, g.hosted.Hostname)
	}
	return g.problem(ctx, doing, err)
}

// find looks for the repository.
func (g *Gitea) find(ctx context.Context) error {
	var found giteaRepository
	err := g.call(ctx, "looking for repository "+g.hosted.String(), http.MethodGet, g.api(), nil, &found)
	switch {
	case status(err) == http.StatusNotFound:
		g.absent = true
		return nil
	case err != nil:
		return err
	case found.FullName == "":
		return failure("check --hostname", "%s is not a Gitea API", g.hosted.Hostname)
	}
	g.repo = &found
	return nil
}

// surveyOwner finds out whether the repository could be made.
func (g *Gitea) surveyOwner(ctx context.Context) error {
	if g.hosted.Personal && g.account != "" && !strings.EqualFold(g.account, g.hosted.Owner) {
		return failure(fmt.Sprintf("use a token of %s, or omit --personal if it is an organisation", g.hosted.Owner),
			"repository %s cannot be created: the token is of %s", g.hosted, g.account)
	}
	err := g.rehearse(ctx, g.owner()+"/repos")
	if status(err) == http.StatusNotFound {
		return g.noOwner(ctx)
	}
	if err == nil {
		// What the key needs is another scope than what making it needs.
		err = g.rehearse(ctx, g.api("keys"))
		if status(err) == http.StatusNotFound {
			err = nil // as expected: there is no repository
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

// rehearse finds out whether the token's scopes are enough for a request that
// makes something, by one that lacks everything and that no server carries out.
// There is no other way: the API does not tell the scopes of a token.
func (g *Gitea) rehearse(ctx context.Context, path string) error {
	_, err := g.exchange(ctx, http.MethodPost, path, map[string]any{}, nil)
	switch status(err) {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return nil
	case http.StatusForbidden:
		if len(scopesAsked(err)) == 0 {
			return nil // what else it may not is asked for elsewhere, in better words
		}
	}
	return g.problem(ctx, "checking what the token allows", err)
}

// noOwner explains that there is no organisation of the name.
func (g *Gitea) noOwner(ctx context.Context) error {
	var user struct{ Login string }
	if _, err := g.exchange(ctx, http.MethodGet, "/users/"+g.hosted.Owner, nil, &user); err == nil && user.Login != "" {
		return failure("add --personal", "%s is a user on %s, not an organisation", user.Login, g.hosted.Hostname)
	}
	return failure("check --owner, or add --personal if it is a user",
		"there is no organisation %s on %s, or it is hidden from %s", g.hosted.Owner, g.hosted.Hostname, g.who())
}

// mayCreate finds out whether the account may make repositories in the
// organisation, as far as the token lets it ask.
func (g *Gitea) mayCreate(ctx context.Context) error {
	if g.account == "" {
		return nil
	}
	var may struct {
		Create bool `json:"can_create_repository"`
		Admin  bool `json:"is_admin"`
		Owner  bool `json:"is_owner"`
	}
	_, err := g.exchange(ctx, http.MethodGet, fmt.Sprintf("/users/%s/orgs/%s/permissions", g.account, g.hosted.Owner), nil, &may)
	switch {
	case status(err) == http.StatusForbidden || status(err) == http.StatusNotFound:
		return nil // nobody says, so that making it has to show
	case err != nil:
		return g.problem(ctx, "checking the rights in organisation "+g.hosted.Owner, err)
	case !may.Create && !may.Admin && !may.Owner:
		return failure("ask an owner of the organisation to create the repository, or to let one of your teams create repositories",
			"%s may not create repositories in organisation %s", g.account, g.hosted.Owner)
	}
	return nil
}

// findNeighbour looks for any repository, to know the address of SSH before
// there is the one that is going to be made.
func (g *Gitea) findNeighbour(ctx context.Context) error {
	if g.hosted.TokenAuth || g.hosted.SSHHostname != "" {
		return nil
	}
	var found struct{ Data []giteaRepository }
	if err := g.call(ctx, "looking for the SSH address of "+g.hosted.Hostname, http.MethodGet, "/repos/search?limit=1", nil, &found); err != nil {
		return err
	}
	if len(found.Data) > 0 {
		g.neighbour = &found.Data[0]
	}
	return nil
}

// surveyRepository finds out whether what is there can be worked with, and
// what would refuse a push.
func (g *Gitea) surveyRepository(ctx context.Context) (protected string, err error) {
	name := g.path()
	settings := "change it in " + g.hosted.HTTPURL(name+"/settings")
	switch {
	case g.repo.Archived:
		return "", failure(settings+", or choose another repository", "repository %s is archived: nobody can push to it", name)
	case g.repo.Mirror:
		return "", failure("choose another repository, or the one that it mirrors", "repository %s is a mirror: nobody can push to it", name)
	case !g.repo.Permissions.Push:
		return "", failure("ask for write access, or use a token of an account that has it", "%s may not push to %s", g.who(), name)
	case g.want.ChangeRequest && !g.repo.HasPullRequests:
		return "", failure(settings, "repository %s has no pull requests", name)
	case g.want.KeyTitle != "" && !g.repo.Permissions.Admin:
		return "", failure("use a token of an account that does, or use --token-auth",
			"adding a deploy key: %s does not administer %s", g.who(), name)
	}
	if err := g.rehearse(ctx, g.api("keys")); err != nil {
		return "", err
	}
	return g.surveyBranch(ctx)
}

// surveyEdits returns what has to change for the repository to be as asked for.
func (g *Gitea) surveyEdits() []string {
	if !g.hosted.Reconcile {
		return nil
	}
	var changes []string
	g.edits = map[string]any{}
	if private := g.hosted.Visibility != "public"; private != g.repo.Private {
		g.edits["private"] = private
		changes = append(changes, fmt.Sprintf("make %s %s", g.path(), g.hosted.Visibility))
	}
	if g.hosted.Description != "" && g.hosted.Description != g.repo.Description {
		g.edits["description"] = g.hosted.Description
		changes = append(changes, "change the description of "+g.path())
	}
	return changes
}

// surveyBranch finds out what would refuse a push to the branch.
func (g *Gitea) surveyBranch(ctx context.Context) (string, error) {
	var branch struct {
		Protected   bool   `json:"protected"`
		UserCanPush bool   `json:"user_can_push"`
		Rule        string `json:"effective_branch_protection_name"`
	}
	doing := fmt.Sprintf("reading branch %s of %s", g.want.Branch, g.path())
	err := g.call(ctx, doing, http.MethodGet, g.api(append([]string{"branches"}, strings.Split(g.want.Branch, "/")...)...), nil, &branch)
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
		return fmt.Sprintf("branch %s is protected, and %s is not among those who may push to it", branch, who)
	}
	return fmt.Sprintf("branch %s is protected by rule %s, and %s is not among those who may push to it", branch, rule, who)
}

// giteaRule protects branches.
type giteaRule struct {
	Name   string   `json:"rule_name"`
	Push   bool     `json:"enable_push"`
	Listed bool     `json:"enable_push_whitelist"`
	Users  []string `json:"push_whitelist_usernames"`
	Teams  []string `json:"push_whitelist_teams"`
}

// surveyRules finds out whether a branch that is not there yet is protected.
// Only who administers the repository is told the rules.
func (g *Gitea) surveyRules(ctx context.Context, doing string) (string, error) {
	if !g.repo.Permissions.Admin {
		return "", nil
	}
	var rules []giteaRule
	if err := g.call(ctx, doing, http.MethodGet, g.api("branch_protections"), nil, &rules); err != nil {
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
		return "", nil // the first one that matches counts
	}
	return "", nil
}

// giteaTeam is a team of an organisation.
type giteaTeam struct {
	Name       string            `json:"name"`
	Permission string            `json:"permission"`
	Units      map[string]string `json:"units_map"`
}

// access is what the team may do with the code of its repositories.
func (t giteaTeam) access() string {
	if code := t.Units["repo.code"]; code != "" && t.Permission != "admin" && t.Permission != "owner" {
		return code
	}
	return t.Permission
}

// giteaRank puts the words for access in order.
var giteaRank = map[string]int{
	"none": 0, "read": 1, "pull": 1, "triage": 1, "write": 2, "push": 2, "maintain": 2, "admin": 3, "owner": 4,
}

// surveyTeams finds out which teams have to be given access. What a team may do
// is the same in all of its repositories: it is not bootstrap's to change.
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
				return failure("check --team", "organisation %s has no team %q", g.hosted.Owner, wanted.Name)
			}
			g.teams = append(g.teams, team.Name)
		}
		if giteaRank[team.access()] < giteaRank[wanted.Permission] {
			return failure(fmt.Sprintf("change that in %s, or request less with --team=%s", g.hosted.HTTPURL("/org/"+g.hosted.Owner+"/teams/"+team.Name), team.Name),
				"team %s has %s access to its repositories, not %s", team.Name, team.access(), wanted.Permission)
		}
	}
	return nil
}

// repositoryTeams returns the teams that have access already by their names in
// lower case.
func (g *Gitea) repositoryTeams(ctx context.Context) (map[string]giteaTeam, error) {
	if g.repo == nil {
		return nil, nil //nolint:nilnil // there is no repository to have teams
	}
	var teams []giteaTeam
	err := g.call(ctx, "listing the teams of "+g.path(), http.MethodGet, g.api("teams"), nil, &teams)
	if status(err) == http.StatusMethodNotAllowed {
		return nil, failure("omit --team", "repository %s belongs to a user, and users have no teams", g.path())
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
	err := pagesOf(ctx, g, "listing the teams of organisation "+g.hosted.Owner, "/orgs/"+g.hosted.Owner+"/teams", func(team giteaTeam) {
		all[strings.ToLower(team.Name)] = team
	})
	var known *Error
	if status(err) == http.StatusForbidden && errors.As(err, &known) && len(scopesAsked(err)) == 0 {
		return nil, failure("use a token of a member, or omit --team", "listing the teams of organisation %s: %s is not a member", g.hosted.Owner, g.who())
	}
	return all, err
}
