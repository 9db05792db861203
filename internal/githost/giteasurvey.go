package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

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
		return hint.Errorf(fmt.Sprintf("use a token of %s, or omit --personal if it is an organization", g.hosted.Owner),
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
	return g.findNeighbor(ctx)
}

// noOwner returns the error for an organization that does not exist.
func (g *Gitea) noOwner(ctx context.Context) error {
	var user struct{ Login string }
	if _, err := g.rest.call(ctx, http.MethodGet, "/users/"+url.PathEscape(g.hosted.Owner), nil, nil, &user); err == nil && user.Login != "" {
		return hint.Errorf("add --personal", "%s is a user on %s, not an organization", user.Login, g.hosted.Hostname)
	}
	return hint.Errorf("check --owner, or add --personal if it is a user",
		"there is no organization %s on %s, or %s cannot read it", g.hosted.Owner, g.hosted.Hostname, g.who())
}

// mayCreate returns an error if the account has no permission to create
// repositories in the organization, nil if the token cannot read it.
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
	_, err := g.rest.call(ctx, http.MethodGet, path, nil, nil, &may)
	switch {
	case status(err) == http.StatusForbidden || status(err) == http.StatusNotFound:
		return nil // unknown: the creation may fail
	case err != nil:
		return g.problem(ctx, "checking the rights in organization "+g.hosted.Owner, err)
	case !may.Create && !may.Admin && !may.Owner:
		return hint.Errorf("ask an owner of the organization to create the repository, or to let one of your teams create repositories",
			"%s has no permission to create repositories in organization %s", g.account, g.hosted.Owner)
	}
	return nil
}

// findNeighbor reads any repository for the SSH host of the one that will be
// created.
func (g *Gitea) findNeighbor(ctx context.Context) error {
	if g.hosted.TokenAuth || g.hosted.SSHHostname != "" {
		return nil
	}
	var found struct{ Data []giteaRepository }
	if _, err := g.rest.call(ctx, http.MethodGet, "/repos/search", url.Values{"limit": {"1"}}, nil, &found); err != nil {
		return g.problem(ctx, "reading the SSH address of "+g.hosted.Hostname, err)
	}
	if len(found.Data) > 0 {
		g.neighbor = &found.Data[0]
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
