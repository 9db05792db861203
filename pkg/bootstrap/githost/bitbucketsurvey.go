package githost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// mayCreate tells whether the account may create a repository in the project.
func (b *Bitbucket) mayCreate(ctx context.Context) error {
	if strings.EqualFold(b.project.Key, "~"+bitbucketSlug(b.api.account)) {
		return nil
	}
	if b.hosted.Personal {
		return failure("use a token of "+b.project.Key[1:]+", or have the repository created there",
			"there is no repository %s, and %s cannot create one for another user", b, b.who())
	}
	// The second one is known from version 8.0 on.
	for _, permission := range []string{"PROJECT_ADMIN", "REPO_CREATE"} {
		projects, err := bitbucketList[bitbucketProject](ctx, b.api, bitbucketCore+"/projects", url.Values{"name": {b.project.Name}, "permission": {permission}})
		if bitbucketStatus(err) == http.StatusBadRequest {
			continue
		}
		if err != nil {
			return b.problem(ctx, "asking what "+b.who()+" may do in project "+b.project.Key, err)
		}
		if slices.ContainsFunc(projects, func(p bitbucketProject) bool { return p.Key == b.project.Key }) {
			return nil
		}
	}
	return failure("use a token with the permission project admin, of an account that has it, or have the repository created",
		"there is no repository %s, and %s may not create one in project %s", b, b.who(), b.project.Key)
}

// surveyRepository finds out what has to be changed in a repository that is
// there, whether the token may do it, and whether the branch takes a push.
func (b *Bitbucket) surveyRepository(ctx context.Context) (changes []string, protected string, err error) {
	r := b.repository
	switch {
	case r.Archived:
		return nil, "", failure("unarchive it in its settings", "repository %s is archived and read-only", r)
	case r.State != "" && r.State != "AVAILABLE":
		return nil, "", failure("try again later, or ask an administrator", "repository %s is not available: its state is %s", r, r.State)
	}
	b.edits, changes = b.wantedEdits()
	admin, err := b.may(ctx, "REPO_ADMIN")
	if err != nil {
		return nil, "", err
	}
	if !admin {
		if err := b.suffices(ctx, len(changes) > 0); err != nil {
			return nil, "", err
		}
		return changes, "", nil // only an administrator is told what protects a branch
	}
	protected, err = b.protected(ctx)
	return changes, protected, err
}

// may tells whether the account has a permission on the repository.
func (b *Bitbucket) may(ctx context.Context, permission string) (bool, error) {
	// The list is the only place where somebody who is no administrator is told.
	repositories, err := bitbucketList[bitbucketRepository](ctx, b.api, bitbucketCore+"/repos",
		url.Values{"name": {b.repository.Name}, "projectkey": {b.project.Key}, "permission": {permission}})
	if err != nil {
		return false, b.problem(ctx, "asking what "+b.who()+" may do with repository "+b.String(), err)
	}
	return slices.ContainsFunc(repositories, func(r bitbucketRepository) bool { return r.ID == b.repository.ID }), nil
}

// suffices tells whether somebody who is no administrator may do all that is
// going to be done.
func (b *Bitbucket) suffices(ctx context.Context, edits bool) error {
	for _, need := range []struct {
		when bool
		to   string
	}{
		{b.want.KeyTitle != "", "add an access key"},
		{len(b.hosted.Teams) > 0, "grant groups access"},
		{edits, "change its settings"},
	} {
		if need.when {
			return failure("use a token with the permission repository admin, of an account that has it",
				"%s may not %s, repository %s: that needs the permission admin", b.who(), need.to, b)
		}
	}
	writes, err := b.may(ctx, "REPO_WRITE")
	if err != nil || writes {
		return err
	}
	return failure("use a token with the permission repository write, of an account that has it", "%s may not push to repository %s", b.who(), b)
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
		changes = append(changes, fmt.Sprintf("describe repository %s as %q", b, d))
	}
	if changes == nil {
		return nil, nil
	}
	return edits, changes
}

// surveyGroups finds out which groups have to be given access.
func (b *Bitbucket) surveyGroups(ctx context.Context) (changes []string, err error) {
	b.grants = nil
	if len(b.hosted.Teams) == 0 {
		return nil, nil
	}
	had := map[string]string{}
	if b.repository != nil {
		grants, err := bitbucketList[bitbucketGrant](ctx, b.api, bitbucketCore+b.repository.path()+"/permissions/groups", nil)
		if err != nil {
			return nil, b.problem(ctx, "listing the groups with access to repository "+b.String(), err)
		}
		for _, g := range grants {
			had[strings.ToLower(g.Group.Name)] = g.Permission
		}
	}
	for _, team := range b.hosted.Teams {
		if !slices.Contains(bitbucketPermissions, team.Permission) {
			return nil, failure("use one of "+strings.Join(bitbucketPermissions, ", "), "Bitbucket knows no permission %q for group %s", team.Permission, team.Name)
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

// isGroup returns why a group cannot be given access.
func (b *Bitbucket) isGroup(ctx context.Context, name string) error {
	groups, err := bitbucketList[string](ctx, b.api, bitbucketCore+"/groups", url.Values{"filter": {name}})
	if err != nil {
		return b.problem(ctx, "finding group "+name, err)
	}
	if slices.ContainsFunc(groups, func(g string) bool { return strings.EqualFold(g, name) }) {
		return nil
	}
	return failure("check --group, or ask an administrator to create it", "there is no group %q", name)
}

// bitbucketRules say what a restriction does, where it keeps pushes out.
var bitbucketRules = map[string]string{
	"read-only":         "no one may change it",
	"pull-request-only": "it is changed by pull requests only",
}

// protected returns why a push to the branch would be refused, "" where it
// would not be or nobody tells.
func (b *Bitbucket) protected(ctx context.Context) (string, error) {
	rules, err := bitbucketList[bitbucketRestriction](ctx, b.api, bitbucketBranches+b.repository.path()+"/restrictions", nil)
	if err != nil {
		return "", b.problem(ctx, "listing the branch restrictions", err)
	}
	for _, rule := range rules {
		why, refuses := bitbucketRules[rule.Type]
		exempt := slices.ContainsFunc(rule.Users, func(u struct {
			Name string `json:"name"`
		}) bool {
			return strings.EqualFold(u.Name, b.api.account)
		})
		if !refuses || exempt || len(rule.Groups) > 0 { // who is in a group, only administrators of the server are told
			continue
		}
		about, err := b.isAbout(ctx, rule)
		if err != nil {
			return "", err
		}
		if about {
			return fmt.Sprintf("a restriction of repository %s says that %s, and %s is no exception", b, why, b.who()), nil
		}
	}
	return "", nil
}

// isAbout tells whether a restriction is about the branch.
func (b *Bitbucket) isAbout(ctx context.Context, rule bitbucketRestriction) (bool, error) {
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
	err := b.api.call(ctx, http.MethodGet, bitbucketModel+b.repository.path()+"/branchmodel", nil, nil, &model)
	if status := bitbucketStatus(err); status == http.StatusNotFound || status == http.StatusConflict {
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

// matchesPattern tells whether a branch fits one of Bitbucket's patterns: ? is a
// character, * any within a level, ** any levels; a pattern that ends in a slash
// is about all below, and one may begin at any level.
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
