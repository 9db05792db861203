package bitbucket

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/lazy"
)

// Read implements rest.Driver.
func (d *driver) Read(ctx context.Context) (*rest.Properties, error) {
	d.remote, d.access = nil, nil
	if err := d.findProject(ctx); err != nil {
		return nil, err
	}
	var found repository
	err := d.call(ctx, http.MethodGet, d.path(coreAPI), nil, nil, &found)
	switch {
	case rest.Missing(err):
		return nil, nil // it does not exist
	case rest.Status(err) == http.StatusUnauthorized && authenticated(err):
		return nil, hint.Errorf("ask an administrator of the project for access", "repository %s exists, but %s cannot read it", d.Name(), d.API.Who())
	case err != nil:
		return nil, d.API.Explain(ctx, "finding repository "+d.Name(), err)
	case !strings.EqualFold(found.Project.Key, d.project.Key) || found.Slug != slug(d.Hosted.Name):
		return nil, hint.Errorf(fmt.Sprintf("set --owner=%s --repository=%s", found.Project.Key, found.Slug),
			"repository %s has been moved to %s/%s", d.Name(), found.Project.Key, found.Slug)
	}
	return d.use(&found)
}

// findProject reads the project by its key or its name.
func (d *driver) findProject(ctx context.Context) error {
	owner := d.Hosted.Owner
	key := owner
	if d.Hosted.Personal {
		key = "~" + strings.ToLower(strings.TrimPrefix(owner, "~"))
	}
	doing := "finding project " + owner
	d.project = project{}
	err := d.call(ctx, http.MethodGet, coreAPI+"/projects/"+url.PathEscape(key), nil, nil, &d.project)
	switch {
	case err == nil:
		return nil
	case !rest.Missing(err) && rest.Status(err) != http.StatusBadRequest:
		return d.API.Explain(ctx, doing, err)
	case d.Hosted.Personal && (d.API.Account == "" || strings.EqualFold(slug(d.API.Account), key[1:])):
		d.project = project{Key: key, Type: "PERSONAL"} // created with its first repository
		return nil
	case d.Hosted.Personal:
		return hint.Errorf("check --owner, or omit --personal if it is a project",
			"user %s not found, or the token of %s cannot read the user's repositories", key[1:], d.API.Who())
	}
	named, err := list[project](ctx, d, coreAPI+"/projects", url.Values{"name": {owner}})
	if err != nil {
		return d.API.Explain(ctx, doing, err)
	}
	named = slices.DeleteFunc(named, func(p project) bool { return !strings.EqualFold(p.Name, owner) })
	switch len(named) {
	case 0:
		return hint.Errorf("set --owner to its key or name, or --personal for a user's repository",
			"project %q not found, or the token of %s cannot read it", owner, d.API.Who())
	case 1:
		d.project = named[0]
		return nil
	}
	return hint.Errorf("set --owner to its key", "%d projects are named %q", len(named), owner)
}

// CheckCreate implements rest.Driver.
func (d *driver) CheckCreate(ctx context.Context, _ githost.Want) (string, error) {
	if strings.EqualFold(d.project.Key, "~"+slug(d.API.Account)) {
		return "", nil
	}
	if d.Hosted.Personal {
		return "", hint.Errorf("use a token of "+d.project.Key[1:]+", or create the repository there first",
			"repository %s does not exist, and %s cannot create it for another user", d.Name(), d.API.Who())
	}
	// Versions before 8.0 do not support the second permission.
	for _, wanted := range []string{"PROJECT_ADMIN", "REPO_CREATE"} {
		projects, err := list[project](ctx, d, coreAPI+"/projects", url.Values{"name": {d.project.Name}, "permission": {wanted}})
		if rest.Status(err) == http.StatusBadRequest {
			continue
		}
		if err != nil {
			return "", d.API.Explain(ctx, "reading the permissions of "+d.API.Who()+" in project "+d.project.Key, err)
		}
		if slices.ContainsFunc(projects, func(p project) bool { return p.Key == d.project.Key }) {
			return "", nil
		}
	}
	return "", hint.Errorf("use a token with project admin permission from an account that has this permission, or create the repository first",
		"repository %s does not exist, and %s has no permission to create it in project %s", d.Name(), d.API.Who(), d.project.Key)
}

// CheckUse implements rest.Driver.
func (d *driver) CheckUse(ctx context.Context, want githost.Want, edits rest.Edits) (protected string, err error) {
	switch r := d.remote; {
	case r.Archived:
		return "", hint.Errorf("unarchive it in its settings", "repository %s is archived and read-only", d.Name())
	case r.State != "" && r.State != "AVAILABLE":
		return "", hint.Errorf("try again later, or ask an administrator", "repository %s is not available: its state is %s", d.Name(), r.State)
	}
	admin, err := d.has(ctx, permission("admin"))
	if err != nil {
		return "", err
	}
	if !admin {
		return "", d.suffices(ctx, want, edits) // only administrators can read branch restrictions
	}
	return d.protected(ctx, want.Branch)
}

// has reports whether the account has a permission on the repository. Without admin permission, an account can read
// its permissions only by filtering the repository list.
func (d *driver) has(ctx context.Context, permission string) (bool, error) {
	repositories, err := list[repository](ctx, d, coreAPI+"/repos",
		url.Values{"name": {d.remote.Name}, "projectkey": {d.project.Key}, "permission": {permission}})
	return slices.ContainsFunc(repositories, func(r repository) bool { return r.ID == d.remote.ID }),
		d.API.Explain(ctx, "reading the permissions of "+d.API.Who()+" on repository "+d.Name(), err)
}

// suffices returns an error if the account does not have the admin permission
// although bootstrap requires it, or has no permission to push.
func (d *driver) suffices(ctx context.Context, want githost.Want, edits rest.Edits) error {
	for _, need := range []struct {
		when bool
		to   string
	}{
		{want.KeyTitle != "", "add an access key"},
		{len(d.Hosted.Teams) > 0, "grant groups access"},
		{edits != rest.Edits{}, "change settings"},
	} {
		if need.when {
			return hint.Errorf("use a token with repository admin permission from an account that has this permission",
				"%s has no permission to %s on repository %s: admin permission is required", d.API.Who(), need.to, d.Name())
		}
	}
	writes, err := d.has(ctx, permission("write"))
	if err != nil || writes {
		return err
	}
	return hint.Errorf("use a token with repository write permission from an account that has this permission",
		"%s has no permission to push to repository %s", d.API.Who(), d.Name())
}

// restriction is the API representation of a branch restriction.
type restriction struct {
	Type    string
	Matcher struct {
		ID   string
		Type struct{ ID string }
	}
	Users  []struct{ Name string }
	Groups []string
}

// restrictionWords describes the types of restrictions that reject pushes.
var restrictionWords = map[string]string{
	"read-only":         "it is read-only",
	"pull-request-only": "changes require a pull request",
}

// protected returns the reason why a push to the branch would be rejected, "" if no reason is known.
func (d *driver) protected(ctx context.Context, branch string) (string, error) {
	rules, err := list[restriction](ctx, d, d.path(branchAPI, "restrictions"), nil)
	if err != nil {
		return "", d.API.Explain(ctx, "listing the branch restrictions", err)
	}
	for _, rule := range rules {
		why, rejects := restrictionWords[rule.Type]
		exempt := slices.ContainsFunc(rule.Users, func(u struct{ Name string }) bool { return strings.EqualFold(u.Name, d.API.Account) })
		if !rejects || exempt || len(rule.Groups) > 0 { // only administrators of the server can read the members of groups
			continue
		}
		applies, err := d.applies(ctx, rule, branch)
		if err != nil {
			return "", err
		}
		if applies {
			return fmt.Sprintf("a branch restriction of repository %s: %s, and %s is not exempt", d.Name(), why, d.API.Who()), nil
		}
	}
	return "", nil
}

// applies reports whether a restriction applies to the branch.
func (d *driver) applies(ctx context.Context, rule restriction, branch string) (bool, error) {
	id := rule.Matcher.ID
	switch rule.Matcher.Type.ID {
	case "ANY_REF":
		return true, nil
	case "BRANCH":
		return strings.TrimPrefix(id, "refs/heads/") == branch, nil
	case "PATTERN":
		return matchesPattern(id, branch), nil
	}
	var model struct {
		Development, Production struct {
			DisplayID string `json:"displayId"`
		}
		Types []struct{ ID, Prefix string }
	}
	err := d.call(ctx, http.MethodGet, d.path(modelAPI, "branchmodel"), nil, nil, &model)
	if rest.Missing(err) || rest.Status(err) == http.StatusConflict {
		return false, nil // there is no model, or no branch yet
	}
	if err != nil {
		return false, d.API.Explain(ctx, "reading the branching model", err)
	}
	switch strings.ToLower(id) {
	case "development":
		return model.Development.DisplayID == branch, nil
	case "production":
		return model.Production.DisplayID == branch, nil
	}
	for _, t := range model.Types {
		if t.ID == id && t.Prefix != "" && strings.HasPrefix(branch, t.Prefix) {
			return true, nil
		}
	}
	return false, nil
}

var patternPart = lazy.Regexp(`\*\*/|\*\*|\*|\?|[^*?]+`)

// matchesPattern reports whether a branch matches a Bitbucket pattern: ? matches one character, * any characters
// within a path segment, and ** any segments. A pattern that ends in a slash matches everything below it, and a match
// may start at any segment.
func matchesPattern(pattern, branch string) bool {
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	var expression strings.Builder
	for _, part := range patternPart().FindAllString(pattern, -1) {
		expression.WriteString(map[string]string{"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[part])
		if !strings.ContainsAny(part, "*?") {
			expression.WriteString(regexp.QuoteMeta(part))
		}
	}
	matcher, err := regexp.Compile("(^|/)" + expression.String() + "$")
	return err == nil && matcher.MatchString("refs/heads/"+branch)
}
