package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
)

// mayCreate returns an error if the account has no permission to create the
// repository.
func (b *Bitbucket) mayCreate(ctx context.Context) error {
	if strings.EqualFold(b.project.Key, "~"+bitbucketSlug(b.account)) {
		return nil
	}
	if b.hosted.Personal {
		return hint.Errorf("use a token of "+b.project.Key[1:]+", or have the repository created there",
			"there is no repository %s, and %s cannot create one for another user", b, b.who())
	}
	// Versions before 8.0 do not have the second permission.
	for _, permission := range []string{"PROJECT_ADMIN", "REPO_CREATE"} {
		projects, err := bitbucketList[bitbucketProject](ctx, b.bitbucketAPI, bitbucketCore+"/projects", url.Values{"name": {b.project.Name}, "permission": {permission}})
		if status(err) == http.StatusBadRequest {
			continue
		}
		if err != nil {
			return b.problem(ctx, "reading the permissions of "+b.who()+" in project "+b.project.Key, err)
		}
		if slices.ContainsFunc(projects, func(p bitbucketProject) bool { return p.Key == b.project.Key }) {
			return nil
		}
	}
	return hint.Errorf("use a token with the permission project admin, of an account that has it, or have the repository created",
		"there is no repository %s, and %s has no permission to create one in project %s", b, b.who(), b.project.Key)
}

// surveyRepository returns the changes that --reconcile requires and why a push
// would be rejected, and an error if the token has not all permissions.
func (b *Bitbucket) surveyRepository(ctx context.Context) (changes []string, protected string, err error) {
	r := b.repository
	switch {
	case r.Archived:
		return nil, "", hint.Errorf("unarchive it in its settings", "repository %s is archived and read-only", r)
	case r.State != "" && r.State != "AVAILABLE":
		return nil, "", hint.Errorf("try again later, or ask an administrator", "repository %s is not available: its state is %s", r, r.State)
	}
	b.edits, changes = b.wantedEdits()
	admin, err := b.hasPermission(ctx, "REPO_ADMIN")
	if err != nil {
		return nil, "", err
	}
	if !admin {
		if err := b.suffices(ctx, len(changes) > 0); err != nil {
			return nil, "", err
		}
		return changes, "", nil // only administrators can read branch restrictions
	}
	protected, err = b.protected(ctx)
	return changes, protected, err
}

// hasPermission reports whether the account has a permission on the repository.
func (b *Bitbucket) hasPermission(ctx context.Context, permission string) (bool, error) {
	// Accounts without the permission admin can read their permissions only by
	// filtering the list.
	repositories, err := bitbucketList[bitbucketRepository](ctx, b.bitbucketAPI, bitbucketCore+"/repos",
		url.Values{"name": {b.repository.Name}, "projectkey": {b.project.Key}, "permission": {permission}})
	if err != nil {
		return false, b.problem(ctx, "reading the permissions of "+b.who()+" on repository "+b.String(), err)
	}
	return slices.ContainsFunc(repositories, func(r bitbucketRepository) bool { return r.ID == b.repository.ID }), nil
}

// suffices returns an error if the bootstrap requires an administrator of the
// repository, or if the account has no permission to push.
func (b *Bitbucket) suffices(ctx context.Context, edits bool) error {
	for _, need := range []struct {
		when bool
		to   string
	}{
		{b.want.KeyTitle != "", "add an access key"},
		{len(b.hosted.Teams) > 0, "grant groups access"},
		{edits, "change settings"},
	} {
		if need.when {
			return hint.Errorf("use a token with the permission repository admin, of an account that has it",
				"%s has no permission to %s on repository %s: the permission admin is required", b.who(), need.to, b)
		}
	}
	writes, err := b.hasPermission(ctx, "REPO_WRITE")
	if err != nil || writes {
		return err
	}
	return hint.Errorf("use a token with the permission repository write, of an account that has it", "%s has no permission to push to repository %s", b.who(), b)
}

// wantedEdits returns what --reconcile changes.
func (b *Bitbucket) wantedEdits() (*bitbucketRepository, []string) {
	if !b.hosted.Reconcile {
		return nil, nil
	}
	var changes []string
	public := b.hosted.Visibility == "public"
	edits := &bitbucketRepository{Name: b.repository.Name, Public: public, Description: b.repository.Description, Project: bitbucketProject{Key: b.project.Key}}
	if public != b.repository.Public {
		changes = append(changes, fmt.Sprintf("make repository %s %s", b, b.hosted.Visibility))
	}
	if d := b.hosted.Description; d != "" && d != b.repository.Description {
		edits.Description = d
		changes = append(changes, fmt.Sprintf("set the description of repository %s to %q", b, d))
	}
	if changes == nil {
		return nil, nil
	}
	return edits, changes
}

// surveyGroups returns the grants that groups need.
func (b *Bitbucket) surveyGroups(ctx context.Context) (changes []string, err error) {
	b.grants = nil
	if len(b.hosted.Teams) == 0 {
		return nil, nil
	}
	had := map[string]string{}
	if b.repository != nil {
		grants, err := bitbucketList[bitbucketGrant](ctx, b.bitbucketAPI, bitbucketCore+b.repository.path()+"/permissions/groups", nil)
		if err != nil {
			return nil, b.problem(ctx, "listing the groups with access to repository "+b.String(), err)
		}
		for _, g := range grants {
			had[strings.ToLower(g.Group.Name)] = g.Permission
		}
	}
	for _, team := range b.hosted.Teams {
		if !slices.Contains(bitbucketPermissions, team.Permission) {
			return nil, hint.Errorf("use one of "+strings.Join(bitbucketPermissions, ", "), "Bitbucket has no permission %q for group %s", team.Permission, team.Name)
		}
		wanted, has := bitbucketPermission(team.Permission), had[strings.ToLower(team.Name)]
		switch {
		case has == "":
			if err := b.isGroup(ctx, team.Name); err != nil {
				return nil, err
			}
			changes = append(changes, fmt.Sprintf("grant group %s the permission %s on %s", team.Name, team.Permission, b))
		case has != wanted && b.hosted.Reconcile:
			changes = append(changes, fmt.Sprintf("change the permission of group %s on %s from %s to %s",
				team.Name, b, strings.ToLower(strings.TrimPrefix(has, "REPO_")), team.Permission))
		default:
			continue
		}
		b.grants = append(b.grants, team)
	}
	return changes, nil
}

// isGroup returns an error if a group does not exist.
func (b *Bitbucket) isGroup(ctx context.Context, name string) error {
	groups, err := bitbucketList[string](ctx, b.bitbucketAPI, bitbucketCore+"/groups", url.Values{"filter": {name}})
	if err != nil {
		return b.problem(ctx, "finding group "+name, err)
	}
	if slices.ContainsFunc(groups, func(g string) bool { return strings.EqualFold(g, name) }) {
		return nil
	}
	return hint.Errorf("check --group, or ask an administrator to create it", "there is no group %q", name)
}

// bitbucketRules describe the types of restrictions that reject pushes.
var bitbucketRules = map[string]string{
	"read-only":         "it is read-only",
	"pull-request-only": "changes require a pull request",
}

// protected returns why a push to the branch would be rejected, "" if no reason is
// known.
func (b *Bitbucket) protected(ctx context.Context) (string, error) {
	rules, err := bitbucketList[bitbucketRestriction](ctx, b.bitbucketAPI, bitbucketBranches+b.repository.path()+"/restrictions", nil)
	if err != nil {
		return "", b.problem(ctx, "listing the branch restrictions", err)
	}
	for _, rule := range rules {
		why, refuses := bitbucketRules[rule.Type]
		exempt := slices.ContainsFunc(rule.Users, func(u struct {
			Name string `json:"name"`
		}) bool {
			return strings.EqualFold(u.Name, b.account)
		})
		if !refuses || exempt || len(rule.Groups) > 0 { // only administrators of the server can read the members of groups
			continue
		}
		applies, err := b.applies(ctx, rule)
		if err != nil {
			return "", err
		}
		if applies {
			return fmt.Sprintf("a branch restriction of repository %s: %s, and %s is not exempt", b, why, b.who()), nil
		}
	}
	return "", nil
}

// applies reports whether a restriction applies to the branch.
func (b *Bitbucket) applies(ctx context.Context, rule bitbucketRestriction) (bool, error) {
	id := rule.Matcher.ID
	switch rule.Matcher.Type.ID {
	case "ANY_REF":
		return true, nil
	case "BRANCH":
		return strings.TrimPrefix(id, "refs/heads/") == b.want.Branch, nil
	case "PATTERN":
		return matchesPattern(id, b.want.Branch), nil
	}
	var model struct {
		Development, Production struct {
			DisplayID string `json:"displayId"`
		}
		Types []struct{ ID, Prefix string }
	}
	err := b.call(ctx, http.MethodGet, bitbucketModel+b.repository.path()+"/branchmodel", nil, nil, &model)
	if code := status(err); code == http.StatusNotFound || code == http.StatusConflict {
		return false, nil // there is no model, or no branch yet
	}
	if err != nil {
		return false, b.problem(ctx, "reading the branching model", err)
	}
	switch strings.ToLower(id) {
	case "development":
		return model.Development.DisplayID == b.want.Branch, nil
	case "production":
		return model.Production.DisplayID == b.want.Branch, nil
	}
	for _, t := range model.Types {
		if t.ID == id && t.Prefix != "" && strings.HasPrefix(b.want.Branch, t.Prefix) {
			return true, nil
		}
	}
	return false, nil
}

var patternPart = regexp.MustCompile(`\*\*/|\*\*|\*|\?|[^*?]+`)

// matchesPattern reports whether a branch matches a pattern of Bitbucket: ? matches
// one character, * any within a path segment, ** any segments. A pattern that ends
// in a slash matches everything below it, and a pattern may match from any segment.
func matchesPattern(pattern, branch string) bool {
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	var expression strings.Builder
	for _, part := range patternPart.FindAllString(pattern, -1) {
		expression.WriteString(map[string]string{"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[part])
		if !strings.ContainsAny(part, "*?") {
			expression.WriteString(regexp.QuoteMeta(part))
		}
	}
	matcher, err := regexp.Compile("(^|/)" + expression.String() + "$")
	return err == nil && matcher.MatchString("refs/heads/"+branch)
}
